//! The run: what Seam remembers of it between requests.
