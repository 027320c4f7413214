use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn delegation() -> Delegation {
    Delegation {
        id: "d-1".try_into().unwrap(),
        from: "a".try_into().unwrap(),
        from_name: "ann".to_owned(),
        to: "b".try_into().unwrap(),
        to_name: "ben".to_owned(),
        number: 1,
        begins_at: at(10),
        ends_at: at(20),
        confirmed_by: None,
        ended: None,
    }
}

#[test]
fn delegation_is_active_from_its_start_until_before_its_end() {
    let stands = |of: &Delegation| [9, 10, 19, 20].map(|it| of.is_active_at(at(it)));
    assert_eq!(stands(&delegation()), [false, true, true, false]);
    let by = PrincipalId::try_from("a").unwrap();
    let ended = DelegationEnd { at: at(15), by, name: "ann".to_owned() };
    let ended = Delegation { ended: Some(ended), ..delegation() };
    assert_eq!([14, 15].map(|it| ended.is_active_at(at(it))), [false, false], "by a clock that went back, too");
    assert_eq!([9, 19, 20].map(|it| delegation().lasts_at(at(it))), [true, true, false]);
    assert!(!ended.lasts_at(at(9)));
}
