//! The tables in the store's file, and what one transaction does to them.

use bytes::Bytes;
use redb::{
    Database, Error, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table,
    TableDefinition, WriteTransaction,
};

use crate::engine::time::Timestamp;
use crate::store::write::{Step, Version, Write};
use crate::store::{StoreError, Value};

/// Kind and key to version, end of life, and content.
const ENTRIES: TableDefinition<'_, (u8, &str), (u64, u64, &[u8])> = TableDefinition::new("entries");
/// End of life and version to kind and key: what is over first.
const ENDS: TableDefinition<'_, (u64, u64), (u8, &str)> = TableDefinition::new("ends");
/// Version to kind and key: what was written first.
const AGES: TableDefinition<'_, u64, (u8, &str)> = TableDefinition::new("ages");
/// List, time and member.
const LISTED: TableDefinition<'_, (&str, u64, &str), ()> = TableDefinition::new("listed");
/// List and member to time.
const LISTED_AT: TableDefinition<'_, (&str, &str), u64> = TableDefinition::new("listed_at");
/// Numbers about the whole.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Kinds of entries.
const VALUE: u8 = 0;
const SET: u8 = 1;

/// What an entry costs beside its content: three keys, versions, the tree.
const OVERHEAD: usize = 200;
/// Entries that are over and go with one transaction at most.
const SWEPT: usize = 1024;

pub(super) fn failed(error: impl Into<Error>) -> StoreError {
    StoreError::Failed(error.into().to_string())
}

/// Makes the tables where there are none. Their format, and whether there is no entry.
pub(super) fn prepare(database: &Database, format: u64) -> Result<(u64, bool), Error> {
    let transaction = database.begin_write()?;
    let (found, is_empty) = {
        let tables = Tables::open(&transaction, Timestamp::default())?;
        let found = tables.numbers.get("format")?.map(|number| number.value());
        (found, tables.entries.is_empty()?)
    };
    if let Some(found) = found {
        transaction.abort()?;
        return Ok((found, is_empty));
    }
    transaction.open_table(NUMBERS)?.insert("format", format)?;
    transaction.commit()?;
    Ok((format, is_empty))
}

/// Whether anything is over.
pub(super) fn has_expired(database: &Database, now: Timestamp) -> Result<bool, Error> {
    let ends = database.begin_read()?.open_table(ENDS)?;
    Ok(ends.first()?.is_some_and(|(end, _)| end.value().0 <= now.0))
}

/// Does `work` and whatever has to go in one transaction, and gives its results once they are on the disk.
pub(super) fn transact<T>(
    database: &Database,
    now: Timestamp,
    capacity: u64,
    work: impl FnOnce(&mut Tables<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let transaction = database.begin_write()?;
    let result = {
        let mut tables = Tables::open(&transaction, now)?;
        let result = work(&mut tables)?;
        tables.sweep()?;
        tables.shrink_to(capacity)?;
        tables.close()?;
        result
    };
    transaction.commit()?;
    Ok(result)
}

/// The tables while they are written.
pub(super) struct Tables<'t> {
    entries: Table<'t, (u8, &'static str), (u64, u64, &'static [u8])>,
    ends: Table<'t, (u64, u64), (u8, &'static str)>,
    ages: Table<'t, u64, (u8, &'static str)>,
    listed: Table<'t, (&'static str, u64, &'static str), ()>,
    listed_at: Table<'t, (&'static str, &'static str), u64>,
    numbers: Table<'t, &'static str, u64>,
    now: Timestamp,
    /// The version given last.
    version: Version,
    /// What the entries cost.
    bytes: u64,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction, now: Timestamp) -> Result<Tables<'t>, Error> {
        let numbers = transaction.open_table(NUMBERS)?;
        let number = |name: &str| numbers.get(name).map(|number| number.map_or(0, |number| number.value()));
        let (version, bytes) = (number("version")?, number("bytes")?);
        Ok(Tables {
            entries: transaction.open_table(ENTRIES)?,
            ends: transaction.open_table(ENDS)?,
            ages: transaction.open_table(AGES)?,
            listed: transaction.open_table(LISTED)?,
            listed_at: transaction.open_table(LISTED_AT)?,
            numbers,
            now,
            version,
            bytes,
        })
    }

    fn close(mut self) -> Result<(), Error> {
        self.numbers.insert("version", self.version)?;
        self.numbers.insert("bytes", self.bytes)?;
        Ok(())
    }

    /// All steps of a write, or none of them; an error of the tables ends the whole transaction.
    pub(super) fn carry_out(&mut self, write: Write<Bytes>) -> Result<Result<(), StoreError>, Error> {
        for (key, expect) in write.expectations() {
            let found = self.entries.get((VALUE, key))?.and_then(|entry| {
                let (version, end, _) = entry.value();
                (end > self.now.0).then_some(version)
            });
            if !expect.holds(found) {
                return Ok(Err(StoreError::Conflict));
            }
        }
        for step in write.steps {
            self.carry_out_step(step)?;
        }
        Ok(Ok(()))
    }

    fn carry_out_step(&mut self, step: Step<Bytes>) -> Result<(), Error> {
        match step {
            Step::Put { key, value, ttl, .. } => self.insert(VALUE, &key, &value, ttl),
            Step::Add { key, member, cap, ttl } => {
                let mut members = live(self.entries.get((SET, key.as_str()))?, self.now, unpacked);
                if !members.contains(&member) && members.len() < cap {
                    members.push(member);
                }
                self.insert(SET, &key, &packed(&members), ttl)
            }
            Step::Note { list, member, at, cap, ttl } => {
                self.note(&list, &member, at)?;
                let over = at.0.saturating_sub(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
                self.bound(&list, over, cap)
            }
            Step::RemoveValue { key } => self.remove(VALUE, &key),
            Step::RemoveSet { key } => self.remove(SET, &key),
            Step::Forget { list, member } => self.forget(&list, &member),
        }
    }

    fn insert(&mut self, kind: u8, key: &str, content: &[u8], ttl: std::time::Duration) -> Result<(), Error> {
        self.remove(kind, key)?;
        self.version += 1;
        let end = self.now.plus_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)).0;
        self.entries.insert((kind, key), (self.version, end, content))?;
        self.ends.insert((end, self.version), (kind, key))?;
        self.ages.insert(self.version, (kind, key))?;
        self.bytes += cost(key, content);
        Ok(())
    }

    fn remove(&mut self, kind: u8, key: &str) -> Result<(), Error> {
        let Some(entry) = self.entries.remove((kind, key))? else { return Ok(()) };
        let (version, end, content) = entry.value();
        self.ends.remove((end, version))?;
        self.ages.remove(version)?;
        self.bytes = self.bytes.saturating_sub(cost(key, content));
        Ok(())
    }

    fn note(&mut self, list: &str, member: &str, at: Timestamp) -> Result<(), Error> {
        self.forget(list, member)?;
        self.listed.insert((list, at.0, member), ())?;
        self.listed_at.insert((list, member), at.0)?;
        let size = self.size(list)?;
        self.numbers.insert(size_of(list).as_str(), size + 1)?;
        Ok(())
    }

    fn forget(&mut self, list: &str, member: &str) -> Result<(), Error> {
        let at = self.listed_at.remove((list, member))?.map(|at| at.value());
        if let Some(at) = at {
            self.listed.remove((list, at, member))?;
            let size = self.size(list)?;
            self.numbers.insert(size_of(list).as_str(), size.saturating_sub(1))?;
        }
        Ok(())
    }

    fn size(&self, list: &str) -> Result<u64, Error> {
        Ok(self.numbers.get(size_of(list).as_str())?.map_or(0, |size| size.value()))
    }

    /// Takes out of a list what is older than `over`, and the oldest while it holds more than `cap`.
    fn bound(&mut self, list: &str, over: u64, cap: usize) -> Result<(), Error> {
        loop {
            let oldest = match self.listed.range((list, 0, "")..(list, u64::MAX, ""))?.next().transpose()? {
                Some((key, _)) => (key.value().1, key.value().2.to_owned()),
                None => return Ok(()),
            };
            if oldest.0 >= over && self.size(list)? <= cap as u64 {
                return Ok(());
            }
            self.forget(list, &oldest.1)?;
        }
    }

    /// Removes what is over.
    fn sweep(&mut self) -> Result<(), Error> {
        let mut over = Vec::new();
        for entry in self.ends.range(..=(self.now.0, u64::MAX))?.take(SWEPT) {
            let (_, entry) = entry?;
            over.push((entry.value().0, entry.value().1.to_owned()));
        }
        over.into_iter().try_for_each(|(kind, key)| self.remove(kind, &key))
    }

    /// Removes what was written longest ago until the rest fits.
    fn shrink_to(&mut self, capacity: u64) -> Result<(), Error> {
        while self.bytes > capacity {
            let oldest = self.ages.first()?.map(|(_, entry)| (entry.value().0, entry.value().1.to_owned()));
            let Some((kind, key)) = oldest else { return Ok(()) };
            self.remove(kind, &key)?;
        }
        Ok(())
    }
}

/// The tables as the last commit left them.
pub(super) struct Reader {
    entries: ReadOnlyTable<(u8, &'static str), (u64, u64, &'static [u8])>,
    listed: ReadOnlyTable<(&'static str, u64, &'static str), ()>,
    now: Timestamp,
}

impl Reader {
    pub(super) fn new(database: &Database, now: Timestamp) -> Result<Reader, Error> {
        let transaction = database.begin_read()?;
        let entries = transaction.open_table(ENTRIES)?;
        Ok(Reader { entries, listed: transaction.open_table(LISTED)?, now })
    }

    pub(super) fn value(&self, key: &str) -> Result<Option<Value>, Error> {
        Ok(self.entries.get((VALUE, key))?.and_then(|entry| {
            let (version, end, content) = entry.value();
            (end > self.now.0).then(|| (Bytes::copy_from_slice(content).into(), version))
        }))
    }

    pub(super) fn members(&self, key: &str) -> Result<Vec<String>, Error> {
        Ok(live(self.entries.get((SET, key))?, self.now, unpacked))
    }

    pub(super) fn newest(&self, list: &str, limit: usize) -> Result<Vec<String>, Error> {
        let mut members = Vec::new();
        // Nothing sorts behind every member of the last time but the time after it.
        for entry in self.listed.range((list, 0, "")..(list, u64::MAX, ""))?.rev().take(limit) {
            members.push(entry?.0.value().2.to_owned());
        }
        Ok(members)
    }
}

type Entry<'e> = redb::AccessGuard<'e, (u64, u64, &'static [u8])>;

/// What stands in an entry that is not over; its default otherwise.
fn live<T: Default>(entry: Option<Entry<'_>>, now: Timestamp, read: impl Fn(&[u8]) -> T) -> T {
    entry.map_or_else(T::default, |entry| {
        let (_, end, content) = entry.value();
        if end > now.0 { read(content) } else { T::default() }
    })
}

fn cost(key: &str, content: &[u8]) -> u64 {
    (3 * key.len() + content.len() + OVERHEAD) as u64
}

/// Where the size of a list stands among the numbers.
fn size_of(list: &str) -> String {
    format!("listed {list}")
}

/// Members as bytes, each behind its length.
fn packed(members: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in members {
        bytes.extend_from_slice(&(member.len() as u32).to_le_bytes());
        bytes.extend_from_slice(member.as_bytes());
    }
    bytes
}

fn unpacked(mut bytes: &[u8]) -> Vec<String> {
    let mut members = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>()
        && let Some((member, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    {
        members.push(String::from_utf8_lossy(member).into_owned());
        bytes = rest;
    }
    members
}

/// What the entries cost.
#[cfg(test)]
pub(super) fn bytes(database: &Database) -> Result<u64, Error> {
    let numbers = database.begin_read()?.open_table(NUMBERS)?;
    Ok(numbers.get("bytes")?.map_or(0, |bytes| bytes.value()))
}
