//! A pickle interpreter that runs nothing.
//!
//! Pickle is a program for a stack machine, and what it may call decides what it can do. This one knows the
//! opcodes and the constructors that a checkpoint of tensors needs; a name outside [`Global`] is refused.
//!
//! Containers live in an arena and are referred to by number, and strings stay where they are in the input.
//! So copying a value is cheap whatever it holds, nothing here recurses, and memory is at most a constant times
//! the input, of which at most [`MOST_STEPS`] opcodes are run: some 100 MB at worst.

use std::collections::HashMap;

/// Opcodes and items that one pickle may take: a checkpoint has some thousands.
const MOST_STEPS: usize = 1 << 20;

/// What went wrong: what was expected, and what was found.
pub(super) type Refusal = (String, String);

/// A value on the stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// A number, or bytes, of no use to a checkpoint's reader.
    Other,
    Text(&'a str),
    /// A tuple or a list, by its number in the arena.
    Sequence(usize),
    /// A dict, by its number in the arena.
    Dict(usize),
    Global(Global),
    Storage(Storage<'a>),
    /// A tensor, by its number in the arena.
    Tensor(usize),
}

/// The names a checkpoint may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Size,
    Storage(Kind),
}

impl Global {
    fn named(module: &str, name: &str) -> Result<Self, Refusal> {
        Ok(match (module, name) {
            ("collections", "OrderedDict") => Global::OrderedDict,
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Global::RebuildTensor,
            ("torch._utils", "_rebuild_parameter") => Global::RebuildParameter,
            ("torch", "Size") => Global::Size,
            _ => match Kind::named(name).filter(|_| matches!(module, "torch" | "torch.cuda")) {
                Some(kind) => Global::Storage(kind),
                None => {
                    let found = format!("a call of {}.{}", module.escape_debug(), name.escape_debug());
                    return refuse("only tensors, dicts, lists and numbers", found);
                }
            },
        })
    }
}

/// The type of the elements of a storage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    F64,
    F32,
    F16,
    BF16,
    /// Integers of so many bytes.
    Integer(usize),
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name.strip_suffix("Storage")? {
            "Double" => Kind::F64,
            "Float" => Kind::F32,
            "Half" => Kind::F16,
            "BFloat16" => Kind::BF16,
            "Long" => Kind::Integer(8),
            "Int" => Kind::Integer(4),
            "Short" => Kind::Integer(2),
            "Char" | "Byte" | "Bool" => Kind::Integer(1),
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Kind::F64 => 8,
            Kind::F32 => 4,
            Kind::F16 | Kind::BF16 => 2,
            Kind::Integer(size) => size,
        }
    }
}

/// The storage of elements: the key of a member of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Storage<'a> {
    pub kind: Kind,
    pub key: &'a str,
    /// Number of elements.
    pub length: usize,
}

/// A view of a storage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View<'a> {
    pub storage: Storage<'a>,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
}

/// What a pickle holds.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    pub root: Value<'a>,
    pub sequences: Vec<Vec<Value<'a>>>,
    pub dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    pub views: Vec<View<'a>>,
    /// Every storage that was named, by key.
    pub storages: HashMap<&'a str, Storage<'a>>,
}

/// Runs the pickle at the beginning of `bytes`; returns what it holds and the bytes after it.
pub(super) fn unpickle(bytes: &[u8]) -> Result<(Pickle<'_>, &[u8]), Refusal> {
    let pickle = Pickle {
        root: Value::None,
        sequences: Vec::new(),
        dicts: Vec::new(),
        views: Vec::new(),
        storages: HashMap::new(),
    };
    let machine =
        Machine { rest: bytes, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new(), steps: 0, pickle };
    machine.run()
}

pub(super) fn refuse<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, Refusal> {
    Err((expected.into(), found.into()))
}

struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value<'a>>,
    /// Heights of the stack at each open mark.
    marks: Vec<usize>,
    memo: HashMap<u32, Value<'a>>,
    steps: usize,
    pickle: Pickle<'a>,
}

impl<'a> Machine<'a> {
    fn run(mut self) -> Result<(Pickle<'a>, &'a [u8]), Refusal> {
        let start = self.rest.len();
        loop {
            self.step(1)?;
            let at = start - self.rest.len();
            let [opcode] = self.array()?;
            match opcode {
                b'.' => {
                    self.pickle.root = self.pop()?;
                    return Ok((self.pickle, self.rest));
                }
                0x80 => self.take(1).map(|_| ())?,
                0x95 => self.take(8).map(|_| ())?,
                b'(' => self.marks.push(self.stack.len()),
                b'0' => self.pop().map(|_| ())?,
                b'1' => self.pop_to_mark().map(|_| ())?,
                b'2' => self.stack.push(self.top()?),
                b'N' => self.stack.push(Value::None),
                0x88 => self.stack.push(Value::Bool(true)),
                0x89 => self.stack.push(Value::Bool(false)),
                b'J' => {
                    let value = i32::from_le_bytes(self.array()?);
                    self.stack.push(Value::Int(value.into()));
                }
                b'K' => {
                    let [value] = self.array()?;
                    self.stack.push(Value::Int(value.into()));
                }
                b'M' => {
                    let value = u16::from_le_bytes(self.array()?);
                    self.stack.push(Value::Int(value.into()));
                }
                b'G' => {
                    self.take(8)?;
                    self.stack.push(Value::Other);
                }
                0x8a => self.long()?,
                b'X' | b'T' | b'B' => {
                    let length = u32::from_le_bytes(self.array()?);
                    self.text(length.into())?;
                }
                0x8c | b'U' | b'C' => {
                    let [length] = self.array()?;
                    self.text(length.into())?;
                }
                0x8d | 0x8e => {
                    let length = u64::from_le_bytes(self.array()?);
                    self.text(length)?;
                }
                b']' | b')' => self.sequence(Vec::new()),
                b't' | b'l' => {
                    let items = self.pop_to_mark()?;
                    self.sequence(items);
                }
                0x85..=0x87 => {
                    let items = self.stack.len().checked_sub(usize::from(opcode - 0x84));
                    let items = match items {
                        Some(first) if first >= self.floor() => self.stack.split_off(first),
                        _ => return refuse("values for a tuple", "too few"),
                    };
                    self.sequence(items);
                }
                b'a' => {
                    let item = self.pop()?;
                    self.append(vec![item])?;
                }
                b'e' => {
                    let items = self.pop_to_mark()?;
                    self.append(items)?;
                }
                b'}' => {
                    self.pickle.dicts.push(Vec::new());
                    self.stack.push(Value::Dict(self.pickle.dicts.len() - 1));
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.set(vec![key, value])?;
                }
                b'u' => {
                    let items = self.pop_to_mark()?;
                    self.set(items)?;
                }
                b'q' => {
                    let [key] = self.array()?;
                    self.memo.insert(key.into(), self.top()?);
                }
                b'r' => {
                    let key = u32::from_le_bytes(self.array()?);
                    self.memo.insert(key, self.top()?);
                }
                0x94 => {
                    self.memo.insert(self.memo.len() as u32, self.top()?);
                }
                b'h' => {
                    let [key] = self.array()?;
                    self.recall(key.into())?;
                }
                b'j' => {
                    let key = u32::from_le_bytes(self.array()?);
                    self.recall(key)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.stack.push(Value::Global(Global::named(module, name)?));
                }
                0x93 => match (self.pop()?, self.pop()?) {
                    (Value::Text(name), Value::Text(module)) => {
                        self.stack.push(Value::Global(Global::named(module, name)?));
                    }
                    _ => return refuse("the name of a constructor", "something else"),
                },
                b'R' => {
                    let (arguments, function) = (self.pop()?, self.pop()?);
                    let value = self.call(function, arguments)?;
                    self.stack.push(value);
                }
                // The state of an object: of a state_dict its version, which the tensors do not need.
                b'b' => {
                    self.pop()?;
                    self.top()?;
                }
                b'Q' => {
                    let id = self.pop()?;
                    let storage = self.storage(id)?;
                    self.stack.push(Value::Storage(storage));
                }
                other => {
                    let found = format!("opcode {other:#04x} at byte {at} of the pickle");
                    return refuse("a pickle of tensors", found);
                }
            }
        }
    }

    fn step(&mut self, count: usize) -> Result<(), Refusal> {
        self.steps = self.steps.saturating_add(count);
        if self.steps > MOST_STEPS {
            return refuse(format!("a pickle of at most {MOST_STEPS} steps"), "more");
        }
        Ok(())
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Refusal> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => refuse(
                "a whole pickle",
                format!("its end {} bytes early", count.saturating_sub(self.rest.len())),
            ),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn line(&mut self) -> Result<&'a str, Refusal> {
        let end = self.rest.iter().take(256).position(|&byte| byte == b'\n');
        let Some(end) = end else { return refuse("a name that ends", "one that does not") };
        let line = self.take(end as u64)?;
        self.take(1)?;
        str::from_utf8(line).or_else(|_| refuse("a name", "bytes that are not UTF-8"))
    }

    fn text(&mut self, length: u64) -> Result<(), Refusal> {
        let bytes = self.take(length)?;
        self.stack.push(str::from_utf8(bytes).map_or(Value::Other, Value::Text));
        Ok(())
    }

    fn long(&mut self) -> Result<(), Refusal> {
        let [length] = self.array()?;
        let bytes = self.take(length.into())?;
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut extended = [if negative { 0xff } else { 0 }; 8];
        self.stack.push(match extended.get_mut(..bytes.len()) {
            Some(low) => {
                low.copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(extended))
            }
            None => Value::Other,
        });
        Ok(())
    }

    /// The stack below this belongs to what was there before the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Value<'a>, Refusal> {
        match self.stack.last() {
            Some(&value) if self.stack.len() > self.floor() => Ok(value),
            _ => refuse("a value on the stack", "none"),
        }
    }

    fn pop(&mut self) -> Result<Value<'a>, Refusal> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value<'a>>, Refusal> {
        match self.marks.pop() {
            Some(mark) if mark <= self.stack.len() => Ok(self.stack.split_off(mark)),
            _ => refuse("a mark on the stack", "none"),
        }
    }

    fn sequence(&mut self, items: Vec<Value<'a>>) {
        self.pickle.sequences.push(items);
        self.stack.push(Value::Sequence(self.pickle.sequences.len() - 1));
    }

    fn append(&mut self, items: Vec<Value<'a>>) -> Result<(), Refusal> {
        match self.top()? {
            Value::Sequence(list) => self.pickle.sequences[list].extend(items),
            _ => return refuse("a list to append to", "something else"),
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<Value<'a>>) -> Result<(), Refusal> {
        let Value::Dict(dict) = self.top()? else { return refuse("a dict to fill", "something else") };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return refuse("a value for each key", "a key without one");
        }
        self.pickle.dicts[dict].extend(pairs.iter().map(|&[key, value]| (key, value)));
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), Refusal> {
        match self.memo.get(&key) {
            Some(&value) => self.stack.push(value),
            None => return refuse("a value remembered before", format!("number {key}, which was not")),
        }
        Ok(())
    }

    fn items(&self, value: Value<'a>) -> Result<&[Value<'a>], Refusal> {
        match value {
            Value::Sequence(sequence) => Ok(&self.pickle.sequences[sequence]),
            _ => refuse("a tuple", "something else"),
        }
    }

    fn call(&mut self, function: Value<'a>, arguments: Value<'a>) -> Result<Value<'a>, Refusal> {
        let arguments = self.items(arguments)?;
        match (function, arguments) {
            (Value::Global(Global::OrderedDict), []) => {
                self.pickle.dicts.push(Vec::new());
                Ok(Value::Dict(self.pickle.dicts.len() - 1))
            }
            // Python 2 hands the items over as a list of pairs.
            (Value::Global(Global::OrderedDict), &[list]) => {
                let mut dict = Vec::new();
                for &pair in self.items(list)? {
                    match self.items(pair)? {
                        &[key, value] => dict.push((key, value)),
                        _ => return refuse("pairs for a dict", "something else"),
                    }
                }
                // One list may be given many times.
                self.step(dict.len())?;
                self.pickle.dicts.push(dict);
                Ok(Value::Dict(self.pickle.dicts.len() - 1))
            }
            (
                Value::Global(Global::RebuildTensor),
                &[Value::Storage(storage), offset, shape, strides, ..],
            ) => {
                let (shape, strides) = (self.counts(shape)?, self.counts(strides)?);
                let offset = count(offset)?;
                self.step(shape.len() + strides.len())?;
                self.pickle.views.push(View { storage, offset, shape, strides });
                Ok(Value::Tensor(self.pickle.views.len() - 1))
            }
            (Value::Global(Global::RebuildParameter), &[tensor @ Value::Tensor(_), ..]) => Ok(tensor),
            (Value::Global(Global::Size), &[size @ Value::Sequence(_)]) => Ok(size),
            (Value::Global(global), _) => refuse(format!("arguments for {global:?}"), "others"),
            _ => refuse("a constructor to call", "something else"),
        }
    }

    fn counts(&self, value: Value<'a>) -> Result<Vec<usize>, Refusal> {
        let items = self.items(value)?;
        if items.len() > 8 {
            return refuse("a tensor of at most 8 dimensions", items.len().to_string());
        }
        items.iter().map(|&item| count(item)).collect()
    }

    /// ('storage', type, key, device, length), to which the older format adds None.
    fn storage(&mut self, id: Value<'a>) -> Result<Storage<'a>, Refusal> {
        match *self.items(id)? {
            [Value::Text("storage"), Value::Global(Global::Storage(kind)), Value::Text(key), _, length]
            | [
                Value::Text("storage"),
                Value::Global(Global::Storage(kind)),
                Value::Text(key),
                _,
                length,
                Value::None,
            ] => {
                let storage = Storage { kind, key, length: count(length)? };
                if self.pickle.storages.insert(key, storage).is_some_and(|before| before != storage) {
                    return refuse("one storage for each key", format!("two for {}", key.escape_debug()));
                }
                Ok(storage)
            }
            _ => refuse("a reference to a storage", "something else"),
        }
    }
}

/// A size or an offset.
fn count(value: Value) -> Result<usize, Refusal> {
    match value {
        Value::Int(value) => {
            usize::try_from(value).or_else(|_| refuse("a size that is not negative", value.to_string()))
        }
        _ => refuse("a size", "something else"),
    }
}
