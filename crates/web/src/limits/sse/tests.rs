use actix_web::test::TestRequest;
use countersign_service::error::Error;
use serde_json::json;

use super::{EventStreams, STREAMS_MAX, STREAMS_OF_ONE_MAX, frame, is_wanted, last_seen};

#[test]
fn streams_per_caller_are_limited() {
    let streams = EventStreams::default();
    let mut seats: Vec<_> = (0..STREAMS_OF_ONE_MAX).map(|_| streams.take("a").unwrap()).collect();
    assert!(matches!(streams.take("a"), Err(Error::TooMany)));
    let other = streams.take("b").unwrap();
    seats.pop();
    drop(other);
    seats.push(streams.take("a").unwrap());
    assert!(matches!(streams.take("a"), Err(Error::TooMany)));
    drop(seats);
    assert!(streams.take("a").is_ok());
}

#[test]
fn streams_in_total_are_limited() {
    let streams = EventStreams::default();
    let seats: Vec<_> = (0..STREAMS_MAX).map(|number| streams.take(&number.to_string()).unwrap()).collect();
    assert!(matches!(streams.take("one more"), Err(Error::TooMany)));
    drop(seats);
    assert!(streams.take("one more").is_ok());
}

#[test]
fn closing_gateway_opens_no_stream() {
    let streams = EventStreams::default();
    streams.close();
    assert!(matches!(streams.take("a"), Err(Error::TooMany)));
}

#[test]
fn a_stream_is_wanted_where_its_type_is_accepted() {
    let wanted = |accept: &str| is_wanted(&TestRequest::get().insert_header(("accept", accept)).to_http_request());
    assert!(wanted("text/event-stream") && wanted("application/json, Text/Event-Stream;q=0.5"));
    assert!(!wanted("application/json") && !wanted("*/*") && !is_wanted(&TestRequest::get().to_http_request()));
}

#[test]
fn last_event_id_is_a_log_position() {
    let seen = |id: &str| last_seen(&TestRequest::get().insert_header(("last-event-id", id)).to_http_request());
    assert_eq!(seen("17").unwrap(), Some(17));
    for wrong in ["", "-1", "x", "1.5", "99999999999999999999"] {
        assert!(matches!(seen(wrong), Err(Error::Invalid { .. })), "{wrong}");
    }
}

#[test]
fn a_frame_is_one_line_of_data_whatever_the_data_says() {
    let data = json!({"text": "a\nid: 9\n\ndata: b\r\u{2028}"});
    let text = frame(3, Some("review.vote"), &data);
    assert!(text.starts_with("id: 3\nevent: review.vote\ndata: {"), "{text}");
    assert_eq!(text.matches('\n').count(), 4, "{text}");
    assert!(!text.contains('\r'), "{text}");
}
