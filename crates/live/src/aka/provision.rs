//! Creates two operators and the files of their nodes and subscribers: all of them, or none.

use super::files::{CardFile, HssFile, SgsnFile};
use super::{AkaError, Operator, credentials, suite_of};
use openssl::pkey::PKey;
use openssl::x509::X509;
use serde::Serialize;
use shakedown_aka::names::{Network, NodeName};
use shakedown_pki::draft::{missing_folders, remove_made};
use shakedown_pki::{Profile, words};
use shakedown_trace::Suite;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Site {
    /// A new folder, or an empty one.
    pub folder: PathBuf,
    pub suite: Suite,
    pub home: String,
    /// The SGSNs' network, which may be the same.
    pub serving: String,
    pub nodes: Vec<String>,
    pub subscribers: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Provisioned {
    pub suite: String,
    pub files: Vec<PathBuf>,
}

/// A validated request.
struct Checked {
    suite: Suite,
    home: Network,
    serving: Network,
    nodes: Vec<NodeName>,
}

impl Site {
    fn check(&self) -> Result<Checked, AkaError> {
        let (home, serving) = (Network::new(&self.home)?, Network::new(&self.serving)?);
        let within =
            |one: &Network, other: &Network| one != other && one.as_str().starts_with(other.as_str());
        if within(&home, &serving) || within(&serving, &home) {
            return Err(AkaError::Option {
                option: "networks",
                given: format!("{home} and {serving}, whose IMSIs could be of either"),
                accepted: "two networks of which neither code begins with the other, or one for both".into(),
            });
        }
        let mut nodes = Vec::new();
        for name in &self.nodes {
            let name = NodeName::new(name)?;
            let taken = name.as_str().strip_prefix("card-").is_some_and(|rest| rest.parse::<usize>().is_ok())
                || name.as_str() == hss_name(&home);
            if taken || nodes.contains(&name) {
                let why = if taken { "the name of another file of the site" } else { "twice" };
                return Err(AkaError::Option {
                    option: "SGSN",
                    given: format!("{name}, {why}"),
                    accepted: "a name that no other node or card has".into(),
                });
            }
            nodes.push(name);
        }
        Ok(Checked { suite: suite_of(&self.suite)?, home, serving, nodes })
    }
}

fn hss_name(home: &Network) -> String {
    format!("hss-{home}")
}

fn pem(der: &[u8]) -> Result<String, AkaError> {
    let text = X509::from_der(der).and_then(|certificate| certificate.to_pem());
    let text = text.map_err(|stack| AkaError::OpenSsl { what: "write a certificate", stack })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn key_pem(pkcs8: &[u8]) -> Result<String, AkaError> {
    let text = PKey::private_key_from_der(pkcs8).and_then(|key| key.private_key_to_pem_pkcs8());
    let text = text.map_err(|stack| AkaError::OpenSsl { what: "write a key", stack })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A file's name and content.
type Content = (String, String);

fn content(name: String, value: &impl Serialize) -> Result<Content, AkaError> {
    let wrong =
        |error: serde_json::Error| AkaError::File { path: name.clone().into(), reason: error.to_string() };
    let text = serde_json::to_string_pretty(value).map_err(wrong)? + "\n";
    Ok((name + ".json", text))
}

/// Creates two operators with a roaming agreement (or one, if the networks are the same), and files for the home
/// network's HSS and subscribers and the serving network's SGSNs. The request is validated, then everything is created
/// in memory and then written; `step` may stop it before that.
///
/// # Errors
/// [`AkaError`]; no file remains then.
pub fn provision(
    site: &Site,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Provisioned, AkaError> {
    let checked = site.check()?;
    check_place(&site.folder)?;
    let contents = contents(&checked, site.subscribers, step)?;
    let files = write(&site.folder, &contents)?;
    Ok(Provisioned { suite: checked.suite.to_string(), files })
}

fn contents(
    site: &Checked,
    subscribers: usize,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vec<Content>, AkaError> {
    let Checked { suite, home, serving, nodes } = site;
    let (profile, kinds) = (Profile::default(), credentials::kinds(suite));
    let own = Operator::new(home, kinds, &profile)?;
    let other = if home == serving { None } else { Some(Operator::new(serving, kinds, &profile)?) };
    let abroad = other.as_ref().unwrap_or(&own);
    let mut contents = Vec::new();
    let mut register = HssFile {
        network: home.to_string(),
        subscribers: BTreeMap::new(),
        barred: Vec::new(),
        certified: [(serving.to_string(), pem(&own.certify(abroad)?)?)].into(),
    };
    let root = pem(&own.root()?)?;
    let authorities: BTreeMap<_, _> = [(serving.to_string(), pem(&abroad.certify(&own)?)?)].into();
    for place in 0..subscribers {
        if step(place).is_break() {
            return Err(AkaError::Interrupted);
        }
        let imsi = format!("{home}{place:0width$}", width = 15 - home.as_str().len());
        let leaf = own.subscriber(&format!("subscriber-{place}.example"))?;
        register.subscribers.insert(imsi.clone(), pem(&leaf.certificate)?);
        let card = CardFile {
            imsi,
            home: home.to_string(),
            suite: suite.to_string(),
            leaf: pem(&leaf.certificate)?,
            key: key_pem(&leaf.key)?,
            root: root.clone(),
            authorities: authorities.clone(),
        };
        contents.push(content(format!("card-{place}"), &card)?);
    }
    contents.push(content(hss_name(home), &register)?);
    for name in nodes {
        let leaf = abroad.node(name.as_str())?;
        let node = SgsnFile {
            name: name.to_string(),
            network: serving.to_string(),
            suite: suite.to_string(),
            leaf: pem(&leaf.certificate)?,
            key: key_pem(&leaf.key)?,
            authority: pem(&abroad.authority()?)?,
            root: pem(&abroad.root()?)?,
            partners: [(home.to_string(), root.clone())].into(),
        };
        contents.push(content(name.to_string(), &node)?);
    }
    Ok(contents)
}

fn wrong(path: &Path) -> impl Fn(std::io::Error) -> AkaError {
    move |error| {
        let (path, reason) = (path.into(), words(&error));
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::EIO | libc::EMFILE | libc::ENFILE) => {
                AkaError::Disk { path, reason }
            }
            _ => AkaError::File { path, reason },
        }
    }
}

/// Rejects a folder that is neither new nor empty, before anything is created.
fn check_place(folder: &Path) -> Result<(), AkaError> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(AkaError::File {
                path: folder.into(),
                reason: "has files in it; accepted: a new folder, or an empty one".into(),
            }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(wrong(folder)(error)),
    }
}

/// Writes all files into the folder, or none. If the process is killed, files remain only in the folder that the user
/// named, not in a hidden one. The files of the nodes are last, so no node starts with an incomplete set.
fn write(folder: &Path, contents: &[Content]) -> Result<Vec<PathBuf>, AkaError> {
    let missing = missing_folders(folder);
    let mut written = Vec::new();
    let made = make_folder(folder).map_err(wrong(folder));
    made.and_then(|()| write_all(folder, contents, &mut written)).inspect_err(|_| {
        for path in &written {
            let _ = std::fs::remove_file(path);
        }
        remove_made(&missing);
    })?;
    Ok(written)
}

/// Creates a folder if it does not exist, accessible only to its owner because it will contain private keys.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or(Ok(()), std::fs::create_dir_all)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Writes new files, and adds their paths to `written`.
fn write_all(folder: &Path, contents: &[Content], written: &mut Vec<PathBuf>) -> Result<(), AkaError> {
    for (name, text) in contents {
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(wrong(&path))?;
        written.push(path.clone());
        file.write_all(text.as_bytes()).map_err(wrong(&path))?;
    }
    Ok(())
}
