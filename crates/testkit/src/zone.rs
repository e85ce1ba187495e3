//! Artificial time zones.

/// A zone with one offset, whole hours east of Greenwich, as a TZif file of version 2.
pub fn fixed_zone(hours: i32) -> Vec<u8> {
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend((hours * 3600).to_be_bytes());
    block.extend([0, 0]);
    block.extend(b"TST\0");
    let mut file = [block.clone(), block].concat();
    file.extend(format!("\nTST{}\n", -hours).bytes());
    file
}
