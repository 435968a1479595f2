//! Writes new certificates and keys to a folder: complete files, private keys readable only by their owner.

use crate::CertsError;
use serde::Serialize;
use shakedown_pki::draft::{Draft, missing_folders, refuse_special, remove_left_over, remove_made};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    pub path: PathBuf,
    pub what: &'static str,
    pub bytes: usize,
}

pub(crate) struct Sheet {
    pub name: &'static str,
    pub what: &'static str,
    pub content: Vec<u8>,
    /// Whether it holds a private key.
    pub is_private: bool,
}

impl Sheet {
    pub(crate) fn public(name: &'static str, what: &'static str, content: impl Into<Vec<u8>>) -> Self {
        Self { name, what, content: content.into(), is_private: false }
    }

    pub(crate) fn private(name: &'static str, what: &'static str, content: impl Into<Vec<u8>>) -> Self {
        Self { name, what, content: content.into(), is_private: true }
    }
}

/// Writes all sheets, or none if one of the files exists and may not be replaced.
pub(crate) fn write(folder: &Path, sheets: &[Sheet], replace: bool) -> Result<Vec<Written>, CertsError> {
    for sheet in sheets {
        let path = folder.join(sheet.name);
        if !replace && path.symlink_metadata().is_ok() {
            return Err(CertsError::Exists { path });
        }
        refuse_special(&path).map_err(|source| CertsError::File { path, action: "writing", source })?;
    }
    let missing = missing_folders(folder);
    write_into(folder, sheets, replace).inspect_err(|_| remove_made(&missing))
}

fn write_into(folder: &Path, sheets: &[Sheet], replace: bool) -> Result<Vec<Written>, CertsError> {
    std::fs::create_dir_all(folder).map_err(|source| CertsError::File {
        path: folder.into(),
        action: "making the folder",
        source,
    })?;
    remove_left_over(folder);
    // All files are on disk before the first gets its name: a full disk leaves none.
    let drafts: Vec<_> = sheets.iter().map(|sheet| draft(folder, sheet)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    for (sheet, draft) in sheets.iter().zip(drafts) {
        let path = folder.join(sheet.name);
        let named = if replace { draft.replace(&path) } else { draft.name(&path) };
        named.map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => CertsError::Exists { path: path.clone() },
            _ => CertsError::File { path: path.clone(), action: "writing", source },
        })?;
        written.push(Written { path, what: sheet.what, bytes: sheet.content.len() });
    }
    Ok(written)
}

/// A sheet in a file that does not have its final name yet.
fn draft(folder: &Path, sheet: &Sheet) -> Result<Draft, CertsError> {
    let path = folder.join(sheet.name);
    let mode = if sheet.is_private { 0o600 } else { 0o644 };
    let mode = mode_of(&path).map_or(mode, |there| if sheet.is_private { there & mode } else { there });
    Draft::write(folder, mode, &sheet.content).map_err(|source| CertsError::File {
        path,
        action: "writing",
        source,
    })
}

/// The permissions of a file that is replaced; the new file gets no others.
fn mode_of(path: &Path) -> Option<u32> {
    let there = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(there.permissions().mode() & 0o777)
}
