//! `onode man`: manual pages, made from the definition of the commands.

use crate::commands::Command;
use onode::{Error, Result};
use onode_console::Output;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode man | man -l -\n  onode man --output /usr/local/share/man/man1")]
pub struct Arguments {
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.output {
        None => output.bytes(&page(Command::definition())?)?,
        Some(directory) => {
            let count = write_all(directory)?;
            output.note(&format!("wrote {count} pages to {}", directory.display()));
        }
    }
    Ok(0)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Error::host("cannot make the manual page", &error))?;
    Ok(page)
}

fn write_all(directory: &Path) -> Result<usize> {
    std::fs::create_dir_all(directory).map_err(|error| Error::host_file("create", directory, &error))?;
    let mut whole = Command::definition();
    whole.build();
    let mut pages = vec![("onode.1".to_owned(), whole.clone())];
    for verb in whole.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("onode-{}", verb.get_name());
        // A subcommand's own name has a blank; the page is found under a dash.
        pages.push((format!("{name}.1"), verb.clone().name(name)));
    }
    for (name, command) in &pages {
        let path = directory.join(name);
        std::fs::write(&path, page(command.clone())?).map_err(|error| Error::host_file("write", &path, &error))?;
    }
    Ok(pages.len())
}
