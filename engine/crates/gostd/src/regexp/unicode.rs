//! Names of Unicode classes, as in `\p{Greek}`.

/// General categories: short and long names, as Go compares them.
const CATEGORIES: &[(&str, &str)] = &[
    ("C", "Other"),
    ("Cc", "Control"),
    ("Cc", "Cntrl"),
    ("Cf", "Format"),
    ("Co", "Privateuse"),
    ("L", "Letter"),
    ("Lc", "Casedletter"),
    ("Ll", "Lowercaseletter"),
    ("Lm", "Modifierletter"),
    ("Lo", "Otherletter"),
    ("Lt", "Titlecaseletter"),
    ("Lu", "Uppercaseletter"),
    ("M", "Mark"),
    ("M", "Combiningmark"),
    ("Mc", "Spacingmark"),
    ("Me", "Enclosingmark"),
    ("Mn", "Nonspacingmark"),
    ("N", "Number"),
    ("Nd", "Decimalnumber"),
    ("Nd", "Digit"),
    ("Nl", "Letternumber"),
    ("No", "Othernumber"),
    ("P", "Punctuation"),
    ("P", "Punct"),
    ("Pc", "Connectorpunctuation"),
    ("Pd", "Dashpunctuation"),
    ("Pe", "Closepunctuation"),
    ("Pf", "Finalpunctuation"),
    ("Pi", "Initialpunctuation"),
    ("Po", "Otherpunctuation"),
    ("Ps", "Openpunctuation"),
    ("S", "Symbol"),
    ("Sc", "Currencysymbol"),
    ("Sk", "Modifiersymbol"),
    ("Sm", "Mathsymbol"),
    ("So", "Othersymbol"),
    ("Z", "Separator"),
    ("Zl", "Lineseparator"),
    ("Zp", "Paragraphseparator"),
    ("Zs", "Spaceseparator"),
];

/// Scripts that Go 1.26 finds by name: those with a one-word name.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];

/// The assigned characters of Unicode 15.0, Go's version.
const ASSIGNED: &str = r"[\p{age=15.0}&&\P{Cn}]";

/// The class called `name` in the syntax of the `regex` crate, usable inside a class and
/// alone; `None` if Go has no class of that name. Case, spaces, hyphens and underscores in a
/// name are ignored.
pub(super) fn class(name: &str) -> Option<String> {
    let name = canonical(name);
    let of_15 = |class: &str| format!(r"[\p{{{class}}}&&\p{{age=15.0}}]");
    Some(match name.as_str() {
        "Any" => r"[\x{0}-\x{10FFFF}]".to_owned(),
        "Ascii" => r"[\x00-\x7F]".to_owned(),
        "Assigned" => ASSIGNED.to_owned(),
        "Cn" | "Unassigned" => format!("[^{ASSIGNED}]"),
        // No text contains surrogates.
        "Cs" | "Surrogate" => r"[^\x{0}-\x{10FFFF}]".to_owned(),
        name => {
            let is_meant =
                |(short, long): &&(&str, &str)| *short == name || *long == name;
            match CATEGORIES.iter().find(is_meant) {
                Some(("C", _)) => format!(r"[^[{ASSIGNED}&&\P{{C}}]]"),
                Some((short, _)) => of_15(short),
                None if SCRIPTS.contains(&name) => of_15(&format!("sc={name}")),
                None => return None,
            }
        }
    })
}

/// The name with an upper-case first letter, lower-case others and no separators.
fn canonical(name: &str) -> String {
    let mut canonical = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, ' ' | '-' | '_')) {
        canonical.push(if canonical.is_empty() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        });
    }
    canonical
}
