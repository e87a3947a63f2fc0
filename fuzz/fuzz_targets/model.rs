//! Model files of any method.

#![no_main]

use kinfolk_nn::{GcnModel, Lgcn, Ltc, ModelFile, read_kin_model};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = ModelFile::parse(bytes, "fuzz") {
        let _ = GcnModel::from_file(file.clone());
        let _ = read_kin_model(file.clone());
        let _ = Lgcn::from_file(file.clone());
        let _ = Ltc::from_file(file);
    }
});
