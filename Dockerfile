# Seam as an image: one static binary, nothing else, for a numeric user.
#
#   docker build -t seam .
#   docker run --read-only --cap-drop ALL -e SEAM_UPSTREAM=https://api.openai.com/v1 --network container:app seam

# Any image with this toolchain will do, for example one that holds a filled cargo home and builds offline.
ARG BUILDER=rust:1.95-bookworm
FROM ${BUILDER} AS build
ARG TARGET=x86_64-unknown-linux-gnu
WORKDIR /src
# Not rust-toolchain.toml: the image is the toolchain, and nothing more is to be fetched for it.
COPY Cargo.toml Cargo.lock ./
COPY src ./src
COPY config ./config
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --locked --release --bin seam --target "${TARGET}" \
 && cp "target/${TARGET}/release/seam" /seam \
 && /seam --version

FROM scratch
# Names are looked up in /etc/hosts first, then by DNS.
COPY --from=build /etc/nsswitch.conf /etc/nsswitch.conf
COPY --from=build /seam /seam
USER 65532:65532
EXPOSE 8484 8485
HEALTHCHECK --interval=10s --timeout=2s CMD ["/seam", "healthcheck"]
ENTRYPOINT ["/seam"]
