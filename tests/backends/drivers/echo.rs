//! Writes every request as the crate reads it to the file that ECHO names, and serves none.

use quiesce_driver::{serve, Driver, Ledger, Outcome, Profile, Request, Verb};
use std::{env, fs::File, io::Write};

struct Echo(File);

impl Driver for Echo {
    fn hello(&self) -> String {
        env::var("HELLO").unwrap()
    }

    fn open(&mut self, _: &Profile, _: &mut Ledger) -> Outcome {
        Outcome::Done
    }

    fn perform(&mut self, r: &Request, ledger: &mut Ledger) -> Outcome {
        let option = |value: Option<u64>| value.unwrap_or(0);
        let name = |value: Option<&str>| value.unwrap_or("").to_string();
        let fields = [
            (r.verb as u32 + 1).to_string(), r.slots.join(","), r.number.to_string(), r.kind.to_string(),
            r.mode.to_string(), name(r.stream), name(r.pool), name(r.instance), option(r.alignment).to_string(),
            option(r.limit).to_string(), option(r.size).to_string(), r.arguments.to_string(), r.reads.join(","),
            r.writes.join(","), u32::from(r.foreign_error).to_string(),
        ];
        writeln!(self.0, "{}", fields.join("|")).unwrap();
        if r.verb == Verb::SynchronizeDevice {
            ledger.see(r#""seen":"device-synchronized","device":0"#.to_string());
        }
        Outcome::Done
    }

    fn close(&mut self, _: &mut Ledger) {}
}

fn main() -> std::io::Result<()> {
    serve(&mut Echo(File::create(env::var("ECHO").unwrap())?))
}
