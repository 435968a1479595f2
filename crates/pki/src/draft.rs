//! Files that appear whole, under their names, or not at all, whoever is killed meanwhile.
//!
//! A draft has no name where the file system knows such files (Linux: `O_TMPFILE`, open(2)): whatever ends its writer also
//! removes it, and no private key is left behind. Elsewhere it is a file `.new-…` beside its final name.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use std::fs::{File, Permissions};
use std::io::{Result, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const PREFIX: &str = ".new-";

/// A file that has no name of its own yet, and is on the disk.
#[derive(Debug)]
pub struct Draft(Kind);

#[derive(Debug)]
enum Kind {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Draft {
    /// Writes it on the file system of `folder`; the umask restricts `mode`.
    ///
    /// # Errors
    ///
    /// What the system says, with no name of a draft in it.
    pub fn write(folder: &Path, mode: u32, content: &[u8]) -> Result<Self> {
        Self::open(folder, mode).and_then(|draft| draft.filled(content)).map_err(|error| {
            match error.raw_os_error() {
                Some(code) => std::io::Error::from_raw_os_error(code),
                None => error.kind().into(),
            }
        })
    }

    fn open(folder: &Path, mode: u32) -> Result<Self> {
        match Self::unnamed(folder, mode) {
            Some(draft) => Ok(draft),
            None => Self::named(folder, mode),
        }
    }

    /// `None` where there are no such files, or no way to name one later.
    fn unnamed(folder: &Path, mode: u32) -> Option<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
        place_of(&file).exists().then_some(Self(Kind::Unnamed(file)))
    }

    fn named(folder: &Path, mode: u32) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(PREFIX).permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
        Ok(Self(Kind::Named(file)))
    }

    fn filled(mut self, content: &[u8]) -> Result<Self> {
        let file = match &mut self.0 {
            Kind::Unnamed(file) => file,
            Kind::Named(file) => file.as_file_mut(),
        };
        file.write_all(content)?;
        file.sync_all()?;
        Ok(self)
    }

    /// Gives it its name.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where the name is taken; what the system says otherwise.
    pub fn name(self, path: &Path) -> Result<()> {
        match self.0 {
            Kind::Unnamed(file) => link(&file, path),
            Kind::Named(file) => file.persist_noclobber(path).map(drop).map_err(|error| error.error),
        }
    }

    /// Gives it a name that may be taken, of a file which it replaces.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn replace(self, path: &Path) -> Result<()> {
        let file = match self.0 {
            // A link replaces nothing, a new name does: for a moment it has another one.
            Kind::Unnamed(file) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let mut builder = tempfile::Builder::new();
                let there = builder
                    .prefix(PREFIX)
                    .make_in(folder.unwrap_or(Path::new(".")), |name| link(&file, name))?;
                there.into_temp_path()
            }
            Kind::Named(file) => file.into_temp_path(),
        };
        file.persist(path).map_err(|error| error.error)
    }
}

/// Where the system lists an open file of ours.
fn place_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn link(file: &File, path: &Path) -> Result<()> {
    Ok(linkat(CWD, place_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn kinds() -> [fn(&Path) -> Draft; 2] {
        [
            |folder| Draft::unnamed(folder, 0o600).expect("a file without a name"),
            |folder| Draft::named(folder, 0o600).expect("a file"),
        ]
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries =
            std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_draft_is_nowhere_to_be_seen() {
        let folder = tempfile::tempdir().expect("folder");
        let draft = Draft::write(folder.path(), 0o600, b"key").expect("written");
        assert_eq!(names(folder.path()), [""; 0]);
        draft.name(&folder.path().join("name")).expect("named");
        assert_eq!(names(folder.path()), ["name"]);
    }

    #[test]
    fn a_name_that_is_taken_stays() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("name");
        for kind in kinds() {
            let draft = kind(folder.path()).filled(b"key").expect("written");
            std::fs::write(&path, "old").expect("written");
            assert_eq!(draft.name(&path).expect_err("taken").kind(), ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&path).expect("read"), b"old");
            assert_eq!(names(folder.path()), ["name"]);
        }
    }

    #[test]
    fn replacing_leaves_one_file_with_the_mode_asked_for() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("name");
        for kind in kinds() {
            let draft = kind(folder.path()).filled(b"key").expect("written");
            std::fs::write(&path, "old").expect("written");
            draft.replace(&path).expect("replaced");
            assert_eq!(std::fs::read(&path).expect("read"), b"key");
            assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
            assert_eq!(names(folder.path()), ["name"]);
        }
    }
}
