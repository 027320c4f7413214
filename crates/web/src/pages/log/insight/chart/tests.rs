use super::*;

fn titled() -> ChartLabels {
    let table = ChartTable { columns: ["a"; 4], rows: Vec::new() };
    ChartLabels { id: "c", title: "C", told: "c".to_owned(), ends: ("a".to_owned(), "b".to_owned()), table }
}

fn drawn(value: u64, mark: Option<u64>) -> ChartPoint {
    ChartPoint { value, mark, words: String::new() }
}

#[test]
fn a_scale_ends_with_a_round_number_that_has_a_whole_half() {
    let tops = [(0, 2), (1, 2), (2, 2), (3, 4), (5, 10), (10, 10), (11, 20), (30, 40), (41, 100), (1_001, 2_000)];
    for (highest, top) in tops {
        assert_eq!(top_of_counts(highest), top, "{highest}");
    }
    assert_eq!(top_of_counts(u64::MAX), u64::MAX);
}

#[test]
fn every_bar_lies_within_its_chart() {
    for values in [vec![], vec![0, 0], vec![1, 999_999], vec![u64::MAX]] {
        let chart = of_counts(titled(), values.iter().map(|it| drawn(*it, None)).collect());
        for bar in &chart.bars {
            assert!(bar.y + bar.height == HEIGHT && bar.x + SLOT - 2 * MARGIN <= chart.width, "{values:?}: {bar:?}");
        }
    }
}

#[test]
fn what_is_more_than_nothing_is_drawn_and_nothing_is_not() {
    let chart = of_counts(titled(), vec![drawn(0, None), drawn(1, None), drawn(1_000_000, None)]);
    let heights: Vec<u64> = chart.bars.iter().map(|it| it.height).collect();
    assert_eq!(heights, [0, LEAST, HEIGHT]);
}

#[test]
fn the_line_above_a_bar_goes_from_its_top_to_the_slower_time() {
    let chart = of_times(titled(), vec![drawn(0, None), drawn(60_000, Some(120_000))]);
    assert_eq!(chart.bars[0].mark, None);
    assert_eq!(chart.bars[1].mark.as_deref(), Some("M15 0V500M11 0H19"));
    assert_eq!((chart.top.as_str(), chart.middle.as_str()), ("2 min", "1 min"));
}

#[test]
fn a_time_is_told_in_the_digits_that_are_known() {
    let told = |millis| lasting(Duration::from_millis(millis));
    let expected = [
        (0, "under 1 s"),
        (1_000, "1 s"),
        (1_500, "1.5 s"),
        (59_400, "59 s"),
        (96_000, "1.6 min"),
        (600_000, "10 min"),
        (5_400_000, "1.5 h"),
        (172_800_000, "2 days"),
    ];
    for (millis, words) in expected {
        assert_eq!(told(millis), words, "{millis}");
    }
}
