//! The protobuf wire format: numbered fields of four wire types.

use super::Error;

/// The value of a field before its type is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raw<'a> {
    /// A varint.
    Number(u64),
    /// Eight bytes.
    Fixed(u64),
    /// A string, bytes, or a nested message.
    Bytes(&'a [u8]),
}

/// The bytes of one message.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// All fields with their numbers, in order.
    pub(super) fn fields(mut self) -> Result<Vec<(u64, Raw<'a>)>, Error> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            let key = self.number()?;
            let raw = match key & 7 {
                0 => Raw::Number(self.number()?),
                1 => Raw::Fixed(u64::from_le_bytes(self.array()?)),
                2 => {
                    let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                    Raw::Bytes(self.take(length)?)
                }
                5 => Raw::Fixed(u32::from_le_bytes(self.array()?).into()),
                other => return Err(Error::Wire(other)),
            };
            all.push((key >> 3, raw));
        }
        Ok(all)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Error::End)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Error::End)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array::<1>()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Error::End)
    }
}
