//! The field is one, and alpha generates it.

use super::super::field::{
    ORDER, add_multiple, invert, multiply, power, symbols, symbols_mut, times_alpha, times_alpha_2, times_alpha_3,
};
use super::reference::{powers, product, scaled, sum};
use super::{SIZES, page};
use alloc::vec;
use onode_base::Prng;

#[test]
fn alpha_generates_every_element_but_zero() {
    let antilogs = powers();
    let mut logs = vec![u32::MAX; 1 << 16];
    for (log, &element) in antilogs.iter().enumerate() {
        assert_eq!(logs[usize::from(element)], u32::MAX, "{element} is alpha to two powers");
        logs[usize::from(element)] = log as u32;
    }
    assert_eq!(logs.iter().filter(|&&log| log == u32::MAX).count(), 1);
    assert_eq!(logs[0], u32::MAX);
    assert_eq!(product(antilogs[ORDER as usize - 1], 2), 1);
    for element in 1..=u16::MAX {
        let log = logs[usize::from(element)];
        let after = |steps: u32| antilogs[((log + steps) % ORDER) as usize];
        assert_eq!(power(2, log), element);
        assert_eq!(invert(element), antilogs[((ORDER - log) % ORDER) as usize]);
        let multiples = [times_alpha(element), times_alpha_2(element), times_alpha_3(element)];
        assert_eq!(multiples, [after(1), after(2), after(3)]);
        // Each element once as a factor beside one that is always another.
        let other = antilogs[(log * 7 + 5) as usize % antilogs.len()];
        assert_eq!(multiply(element, other), after(logs[usize::from(other)]));
    }
    assert_eq!([times_alpha(0), times_alpha_2(0), times_alpha_3(0), invert(0)], [0; 4]);
}

#[test]
fn axioms_hold() {
    let mut random = Prng::new(1);
    for _ in 0..20_000 {
        let [a, b, c] = [(); 3].map(|()| random.next_u64() as u16);
        assert_eq!(multiply(a, b), product(a, b));
        assert_eq!(multiply(a, b), multiply(b, a));
        assert_eq!(multiply(a, multiply(b, c)), multiply(multiply(a, b), c));
        assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
        assert_eq!([multiply(a, 1), multiply(a, 0), power(a, 0), power(a, 1)], [a, 0, 1, a]);
        assert_eq!(multiply(a, invert(a)), u16::from(a != 0));
    }
}

#[test]
fn a_page_is_multiplied_as_its_symbols_are() {
    let mut random = Prng::new(2);
    for bytes in SIZES {
        for factor in [0, 1, 2, 0x8000, 0xffff, random.next_u64() as u16] {
            let (of, mut to) = (page(&mut random, bytes), page(&mut random, bytes));
            let expected = sum(&to, &scaled(&of, factor));
            add_multiple(symbols_mut(&mut to), symbols(&of), factor);
            assert!(to == expected, "{bytes} bytes times {factor}");
        }
    }
}
