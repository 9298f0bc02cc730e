//! Dates and times in the forms that people and programs write.

/// A day, a time of day, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The day, if it is given.
    pub day: Option<Day>,
    /// The time of day, if it is given.
    pub time: Option<Time>,
    /// Minutes east of UTC, if given.
    pub zone: Option<i16>,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// None where only month and day are said.
    pub year: Option<u16>,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Seconds since midnight.
    pub seconds: u32,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

impl Moment {
    /// All readings of a folded text that is one moment: `01/02/2024` has two.
    pub fn read(text: &str) -> Vec<Moment> {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        if text.len() > 48 || digits == 0 || digits > 26 {
            return Vec::new();
        }
        let mut reader = Reader { rest: text.trim() };
        reader.weekday();
        if let Some(time) = reader.time_alone() {
            return vec![time];
        }
        let days = reader.days();
        if days.is_empty() {
            return Vec::new();
        }
        reader.skip([',', ' ']);
        let _ = reader.eat("t") || reader.eat("at ");
        reader.skip([' ']);
        let (time, zone) = if reader.rest.is_empty() { (None, None) } else { (reader.time(), reader.zone()) };
        if !reader.rest.is_empty() {
            return Vec::new();
        }
        days.into_iter().map(|day| Moment { day: Some(day), time, zone }).collect()
    }

    /// Whether both are one moment. A missing year agrees with any, a missing time with midnight,
    /// a missing zone with any.
    pub fn same(&self, other: &Moment) -> bool {
        if let (Some(a), Some(b)) = (self.instant(), other.instant()) {
            return a == b;
        }
        let days = match (self.day, other.day) {
            (Some(a), Some(b)) => {
                (a.month, a.day) == (b.month, b.day)
                    && (a.year == b.year || a.year.is_none() || b.year.is_none())
            }
            (None, None) => true,
            _ => false,
        };
        let midnight = Time { seconds: 0, nanos: 0 };
        days && self.time.unwrap_or(midnight) == other.time.unwrap_or(midnight)
    }

    /// Seconds and nanoseconds of a moment that is complete, zone included.
    fn instant(&self) -> Option<(i64, u32)> {
        let (day, time, zone) = (self.day?, self.time?, self.zone?);
        let days = days_from_civil(i64::from(day.year?), i64::from(day.month), i64::from(day.day));
        Some((days * 86_400 + i64::from(time.seconds) - i64::from(zone) * 60, time.nanos))
    }
}

/// Days since 1970-01-01, by Howard Hinnant's algorithm.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The month a folded word names, in full or by at least its first three letters.
pub fn month(word: &str) -> Option<u8> {
    if word.len() < 3 {
        return None;
    }
    let found =
        MONTHS.iter().position(|month| month.starts_with(word) || (word == "sept" && *month == "september"));
    found.map(|index| index as u8 + 1)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn skip<const N: usize>(&mut self, chars: [char; N]) {
        self.rest = self.rest.trim_start_matches(chars);
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn digits(&mut self) -> &'t str {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits
    }

    fn letters(&mut self) -> &'t str {
        let len = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (letters, rest) = self.rest.split_at(len);
        self.rest = rest;
        letters
    }

    fn weekday(&mut self) {
        let before = self.rest;
        let word = self.letters();
        if word.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(word)) {
            self.skip(['.', ',', ' ']);
        } else {
            self.rest = before;
        }
    }

    fn days(&mut self) -> Vec<Day> {
        if self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return self.month_first().into_iter().collect();
        }
        let first = self.digits();
        if first.len() == 8 {
            // 20240526
            return valid(&first[..4], &first[4..6], &first[6..]).into_iter().collect();
        }
        let Some(mark) = self.rest.chars().next() else { return Vec::new() };
        if matches!(mark, '-' | '/' | '.') {
            let before = self.rest;
            self.rest = &self.rest[1..];
            if self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                self.rest = before;
                return self.day_first(first).into_iter().collect();
            }
            let second = self.digits();
            if !self.eat(mark.encode_utf8(&mut [0; 4])) {
                return Vec::new();
            }
            let third = self.digits();
            let readings = if first.len() == 4 {
                [valid(first, second, third), None]
            } else if third.len() == 4 {
                [valid(third, first, second), valid(third, second, first)]
            } else {
                [None, None]
            };
            let [a, b] = readings;
            return a.into_iter().chain(b.filter(|day| Some(*day) != a)).collect();
        }
        self.day_first(first).into_iter().collect()
    }

    /// `July 8, 1956`, `Jul 8th`
    fn month_first(&mut self) -> Option<Day> {
        let month = month(self.letters())?;
        self.skip(['.', ' ', '-']);
        let day = self.digits();
        self.ordinal();
        self.skip([',', ' ', '-']);
        self.year(month, day)
    }

    /// `8 July 1956`, `8th of July`, `8-Jul-1956`
    fn day_first(&mut self, day: &str) -> Option<Day> {
        self.ordinal();
        self.skip([' ', '-', '/', '.']);
        self.eat("of ");
        let month = month(self.letters())?;
        self.skip(['.', ',', ' ', '-', '/']);
        self.year(month, day)
    }

    fn ordinal(&mut self) {
        for end in ["st", "nd", "rd", "th"] {
            if self.rest.starts_with(end) {
                self.rest = &self.rest[2..];
                return;
            }
        }
    }

    fn year(&mut self, month: u8, day: &str) -> Option<Day> {
        let before = self.rest;
        let year = self.digits();
        let clock = self.rest.starts_with(':');
        let year = match year.len() {
            4 if !clock => Some(year.parse().ok()?),
            _ => {
                self.rest = before;
                None
            }
        };
        let day: u8 = day.parse().ok()?;
        (1..=31).contains(&day).then_some(Day { year, month, day })
    }

    fn time_alone(&mut self) -> Option<Moment> {
        let before = self.rest;
        let time = self.time();
        let zone = time.and_then(|_| self.zone());
        if let Some(time) = time
            && self.rest.is_empty()
        {
            return Some(Moment { day: None, time: Some(time), zone });
        }
        self.rest = before;
        None
    }

    /// `13:00`, `13:00:00.5`, `1 pm`, `1:00 p.m.`
    fn time(&mut self) -> Option<Time> {
        let hour: u32 = two(self.digits())?;
        let (mut minute, mut second, mut nanos) = (0, 0, 0);
        let clock = self.eat(":");
        if clock {
            let minutes = self.digits();
            if minutes.len() != 2 {
                return None;
            }
            minute = two(minutes)?;
            if self.eat(":") {
                let seconds = self.digits();
                if seconds.len() != 2 {
                    return None;
                }
                second = two(seconds)?;
                if self.eat(".") {
                    let fraction = self.digits();
                    if fraction.is_empty() || fraction.len() > 9 {
                        return None;
                    }
                    nanos = format!("{fraction:0<9}").parse().ok()?;
                }
            }
        }
        let before = self.rest;
        self.skip([' ']);
        let afternoon = if self.eat("a.m.") || self.eat("am") {
            Some(false)
        } else if self.eat("p.m.") || self.eat("pm") {
            Some(true)
        } else {
            self.rest = before;
            None
        };
        let hour = match afternoon {
            None if clock && hour < 24 => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(pm) => hour % 12 + if pm { 12 } else { 0 },
            None => return None,
        };
        (minute < 60 && second < 60).then_some(Time { seconds: hour * 3600 + minute * 60 + second, nanos })
    }

    /// `z`, `utc`, `+02:00`, `-0500`; none and nothing read if there is none.
    fn zone(&mut self) -> Option<i16> {
        self.skip([' ']);
        for name in ["z", "utc", "gmt"] {
            if self.rest == name {
                self.rest = "";
                return Some(0);
            }
        }
        let before = self.rest;
        let west = self.rest.starts_with('-');
        if !west && !self.rest.starts_with('+') {
            return None;
        }
        self.rest = &self.rest[1..];
        let first = self.digits();
        let (hours, minutes) = match first.len() {
            4 => first.split_at(2),
            2 if self.eat(":") => (first, self.digits()),
            2 => (first, "0"),
            _ => {
                self.rest = before;
                return None;
            }
        };
        let total = two(hours)? as i16 * 60 + two(minutes)? as i16;
        Some(if west { -total } else { total })
    }
}

fn two(digits: &str) -> Option<u32> {
    (1..=2).contains(&digits.len()).then(|| digits.parse().ok()).flatten()
}

fn valid(year: &str, month: &str, day: &str) -> Option<Day> {
    let year: u16 = if year.len() == 4 { year.parse().ok()? } else { return None };
    let (month, day) = (two(month)? as u8, two(day)? as u8);
    let good = (1000..=2999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    good.then_some(Day { year: Some(year), month, day })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, expected: bool) {
        let (left, right) = (Moment::read(a), Moment::read(b));
        let same = left.iter().any(|left| right.iter().any(|right| left.same(right)));
        assert_eq!(same, expected, "{a:?} {left:?}, {b:?} {right:?}");
    }

    #[test]
    fn one_day_in_many_forms() {
        for text in [
            "2031/02/03",
            "2031.2.3",
            "20310203",
            "02/03/2031",
            "03/02/2031",
            "3.2.2031",
            "3 feb 2031",
            "february 3, 2031",
            "feb 3rd, 2031",
            "3rd of february 2031",
            "monday, 3 february 2031",
            "3-feb-2031",
            "2031-02-03t00:00:00z",
            "2031-02-03 00:00",
            "feb 3",
        ] {
            check("2031-02-03", text, true);
        }
        for text in ["2031-02-04", "2031-03-02t00:00:00z", "2030-02-03", "2031-02-03t01:00:00z", "feb 4"] {
            check("2031-02-03", text, false);
        }
    }

    #[test]
    fn one_time_in_many_forms() {
        for text in ["13:00", "1:00 pm", "1 pm", "1pm", "1:00 p.m.", "13:00:00.000", "13:00:00z"] {
            check("13:00:00", text, true);
        }
        for text in ["1:00 am", "13:00:30", "13:01", "2031-02-03t13:00:00"] {
            check("13:00:00", text, false);
        }
    }

    #[test]
    fn one_instant_in_many_forms() {
        for text in [
            "2031-02-03 09:52:38",
            "2031-02-03t09:52:38z",
            "2031-02-03t10:52:38+01:00",
            "february 3, 2031 at 9:52:38 am",
            "2031-02-03t09:52:38.000+0000",
        ] {
            check("2031-02-03t09:52:38z", text, true);
        }
        check("2031-02-03t09:52:38z", "2031-02-03t09:52:38+01:00", false);
        check("2031-02-03t09:52:38", "2031-02-03t09:52:3", false);
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in
            ["", "12", "2031", "13/14/2031", "2031-02", "w 12 34", "1-2", "march", "5-25 lbs", "١٢:٠٠"]
        {
            assert!(Moment::read(text).is_empty(), "{text} {:?}", Moment::read(text));
        }
    }
}
