//! Quantities have the semantics of Kubernetes' `resource.Quantity`.

use kubemu_cel::{Budget, Dialect, Env, Program, Variables};

fn holds(source: &str) -> Result<bool, String> {
    let env = Env::new(Dialect::default());
    let program = Program::compile(source, &env).map_err(|it| format!("{it:?}"))?;
    let found = program.run(&Variables::new(), &mut Budget::default());
    found
        .map(|value| value.as_bool() == Some(true))
        .map_err(|error| error.to_string())
}

fn all_hold(sources: &[&str]) {
    for source in sources {
        assert_eq!(holds(source), Ok(true), "{source}");
    }
}

#[test]
fn exponents_keep_their_lower_32_bits() {
    all_hold(&[
        "isQuantity('12E72036854775807')",
        "quantity('5E4294967297') == quantity('50')",
        "quantity('5E4294967295').compareTo(quantity('500m')) == 0",
        "!isQuantity('1E9223372036854775808')",
    ]);
}

#[test]
fn decimals_of_any_length_are_compared_digit_by_digit() {
    all_hold(&[
        "quantity('99999999999999999999G').isGreaterThan(quantity('99999999999999999998G'))",
        "quantity('9223372036854775808').compareTo(quantity('9223372036854775807')) == 1",
        "quantity('1000000000000000000000000000000000000000000000000000000000001')\
         .isLessThan(quantity('1000000000000000000000000000000000000000000000000000000000002'))",
        "quantity('-1E2000').isLessThan(quantity('-1E1999'))",
        "quantity('1E1000').add(quantity('1')).isLessThan(quantity('2E1000'))",
        "quantity('1E1000').add(1).sub(quantity('1E1000')) == quantity('1')",
        // Only quantities with binary suffixes have a maximum.
        "quantity('12Ei') == quantity('9223372036854775807')",
        "quantity('12E') == quantity('12000000000000000000')",
    ]);
}

#[test]
fn values_finer_than_nano_are_rounded_away_from_zero() {
    all_hold(&[
        "quantity('0.0000000001') == quantity('1n')",
        "quantity('-1.0000000001') == quantity('-1000000001n')",
        "quantity('99999999999999999999.9999999999') == quantity('100000000000000000000')",
        "quantity('1e-1000000000') == quantity('1n')",
    ]);
}

#[test]
fn a_quantity_without_digits_is_zero_only_with_some_suffixes() {
    all_hold(&[
        "isQuantity('.Ki') && isQuantity('-.Ki') && isQuantity('.E5')",
        "!isQuantity('.Ei') && !isQuantity('+e-12') && isQuantity('0e-12')",
    ]);
}

#[test]
fn sums_with_too_many_digits_are_an_error_and_take_no_time() {
    let sum = "quantity('1E1000000000').add(quantity('1')).isInteger()";
    let error = "the sum of the quantities has too many digits".to_owned();
    assert_eq!(holds(sum), Err(error));
    all_hold(&[
        "quantity('1E1000000000').add(quantity('0')) == quantity('1E1000000000')",
    ]);
}

#[test]
fn floats_are_converted_from_the_stored_digits() {
    all_hold(&[
        "quantity('1.5').asApproximateFloat() == 1.5",
        "quantity('1e400').asApproximateFloat() == double('Infinity')",
        "quantity('-1e-1000').asApproximateFloat() == -0.000000001",
        "quantity('100000000000000000000').asApproximateFloat() == 100000000000000000000.0",
    ]);
}

#[test]
fn a_quantity_in_canonical_form_is_printed_as_written() {
    let rows = [
        ("quantity('+5')", "+5"),
        ("quantity('0070')", "0070"),
        ("quantity('5000')", "5k"),
        ("quantity('1500e-3')", "1500e-3"),
        ("quantity('1536Ki')", "1536Ki"),
        ("quantity('2048Ki')", "2Mi"),
        ("quantity('1024.0Ki')", "1Mi"),
        ("quantity('0.5Ki')", "512"),
        ("quantity('1e4').add(10)", "10010"),
        ("quantity('0').add(20000)", "20e3"),
        ("quantity('1').sub(quantity('1'))", "0"),
        // No suffix is large enough for this quantity.
        ("quantity('1000000000000000000000')", "1"),
    ];
    for (value, text) in rows {
        let source = format!("[optional.of({value})].all(i, i.value() == {value})");
        let lost =
            format!("unsupported conversion to ref.Val: (*resource.Quantity){text}");
        assert_eq!(holds(&source), Err(lost), "{source}");
    }
}
