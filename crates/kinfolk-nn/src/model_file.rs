//! What any file of `kinfolk train` holds.

use crate::{KinModel, LgcnModel, LtcModel, Model};
use kinfolk::{Error, Result};
use std::path::Path;

/// The model of one of the methods that learn.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelFile {
    /// `kin`.
    Kin(KinModel),
    /// `lgcn`.
    Lgcn(LgcnModel),
    /// `ltc`.
    Ltc(LtcModel),
    /// `gcn-v`, and `gcn-ve` where there is a GCN-E.
    Networks(Model),
}

impl ModelFile {
    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        if let Some(model) = KinModel::parse(bytes, place)? {
            return Ok(Self::Kin(model));
        }
        if let Some(model) = LgcnModel::parse(bytes, place)? {
            return Ok(Self::Lgcn(model));
        }
        if let Some(model) = LtcModel::parse(bytes, place)? {
            return Ok(Self::Ltc(model));
        }
        Model::parse(bytes, place).map(Self::Networks)
    }

    /// The name of the method it is for.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Kin(_) => "kin",
            Self::Lgcn(_) => "lgcn",
            Self::Ltc(_) => "ltc",
            Self::Networks(model) if model.gcn_e.is_some() => "gcn-ve",
            Self::Networks(_) => "gcn-v",
        }
    }
}
