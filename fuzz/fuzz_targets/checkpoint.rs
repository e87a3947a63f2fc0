//! Networks from PyTorch checkpoints.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(network) = kinfolk_nn::parse_checkpoint(bytes, "fuzz") {
        assert_eq!(network.hidden.weight.len(), network.hidden.inputs * network.hidden.outputs);
    }
});
