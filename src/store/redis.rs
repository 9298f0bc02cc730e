//! The store in a Redis server, shared by all replicas. What has to happen
//! together happens in one script (`redis/write.lua`).

mod link;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, Script, ServerErrorKind};

pub(crate) use link::Address;
use link::{Link, Links};

use super::write::{Step, Version, Write};
use super::{StoreError, Value};

/// The head of every key: the server may serve others, too.
const PREFIX: &str = "seam:";
/// Digits of a version, at the head of its value.
const VERSION_DIGITS: usize = 16;

/// The store in a Redis server.
#[derive(Debug)]
pub(super) struct Redis {
    links: Links,
    script: Script,
}

impl Redis {
    /// A store at `address`, which is connected to when it is first asked.
    pub(super) fn new(address: Address) -> Redis {
        Redis { links: Links::new(address), script: Script::new(include_str!("redis/write.lua")) }
    }

    pub(super) async fn values(&self, keys: &[String]) -> Result<Vec<Option<Value>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut get = redis::cmd("MGET");
        for key in keys {
            get.arg(value_key(key));
        }
        let values: Vec<Option<Bytes>> = self.ask(get).await?;
        values.into_iter().map(|value| value.map(split).transpose()).collect()
    }

    pub(super) async fn members(&self, keys: &[String]) -> Result<Vec<Vec<String>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline.cmd("SMEMBERS").arg(set_key(key));
        }
        let link = self.links.link().await?;
        let members = pipeline.query_async(&mut link.connection()).await;
        members.map_err(|error| self.failed(&error, &link))
    }

    pub(super) async fn newest(&self, list: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut range = redis::cmd("ZREVRANGE");
        range.arg(list_key(list)).arg(0).arg(limit - 1);
        self.ask(range).await
    }

    pub(super) async fn write(&self, write: Write) -> Result<(), StoreError> {
        let write = write.encoded()?;
        let mut call = self.script.prepare_invoke();
        for step in write.steps {
            let (key, arguments) = spelled(step);
            call.key(key);
            for argument in arguments {
                call.arg(&argument[..]);
            }
        }
        let link = self.links.link().await?;
        let written: Result<bool, _> = call.invoke_async(&mut link.connection()).await;
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::Conflict),
            Err(error) => Err(self.failed(&error, &link)),
        }
    }

    /// Whoever asked has waited long enough: the next one gets a new connection.
    pub(super) fn let_go(&self) {
        self.links.let_go(None);
    }

    async fn ask<T: FromRedisValue>(&self, command: Cmd) -> Result<T, StoreError> {
        let link = self.links.link().await?;
        command.query_async(&mut link.connection()).await.map_err(|error| self.failed(&error, &link))
    }

    fn failed(&self, error: &RedisError, link: &Link) -> StoreError {
        // A server that lost its part (a failover) stays behind the connection; the name may lead elsewhere.
        let demoted = [ServerErrorKind::ReadOnly, ServerErrorKind::MasterDown].map(redis::ErrorKind::Server);
        if error.is_unrecoverable_error() || demoted.contains(&error.kind()) {
            self.links.let_go(Some(link));
        }
        link::told(error)
    }
}

fn value_key(key: &str) -> String {
    format!("{PREFIX}v:{key}")
}

fn set_key(key: &str) -> String {
    format!("{PREFIX}s:{key}")
}

fn list_key(list: &str) -> String {
    format!("{PREFIX}l:{list}")
}

/// Version and content of a stored value.
fn split(mut stored: Bytes) -> Result<Value, StoreError> {
    let unknown = || StoreError::Failed("a value under one of our keys is not ours".to_owned());
    if stored.len() < VERSION_DIGITS {
        return Err(unknown());
    }
    let content = stored.split_off(VERSION_DIGITS);
    let version: Option<Version> = std::str::from_utf8(&stored).ok().and_then(|digits| digits.parse().ok());
    Ok((content.into(), version.ok_or_else(unknown)?))
}

/// A step as the script takes it: its key, and five arguments.
fn spelled(step: Step<Bytes>) -> (String, [Bytes; 5]) {
    let number = |number: u128| Bytes::from(number.to_string());
    let word = Bytes::from_static;
    let none = Bytes::new;
    match step {
        Step::Put { key, value, expect, ttl } => {
            let expected = match expect {
                super::Expect::Absent => none(),
                super::Expect::Version(version) => Bytes::from(format!("{version:016}")),
            };
            (value_key(&key), [word(b"put"), expected, value, number(ttl.as_millis()), none()])
        }
        Step::Add { key, member, cap, ttl } => {
            let arguments =
                [word(b"add"), Bytes::from(member), number(cap as u128), number(ttl.as_millis()), none()];
            (set_key(&key), arguments)
        }
        Step::Note { list, member, at, cap, ttl } => {
            let member = Bytes::from(member);
            let (cap, ttl) = (number(cap as u128), number(ttl.as_millis()));
            (list_key(&list), [word(b"note"), member, cap, ttl, number(u128::from(at.0))])
        }
        Step::RemoveValue { key } => (value_key(&key), [word(b"remove"), none(), none(), none(), none()]),
        Step::RemoveSet { key } => (set_key(&key), [word(b"remove"), none(), none(), none(), none()]),
        Step::Forget { list, member } => {
            (list_key(&list), [word(b"forget"), Bytes::from(member), none(), none(), none()])
        }
    }
}
