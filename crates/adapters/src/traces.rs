//! Exports traces to an OpenTelemetry collector, if one is configured. Each request and each delivery attempt is a
//! span. Spans contain routes, statuses and fixed names, and no data from clients.

mod http_exporter;

use countersign_domain::delivery::delivery_record::AttemptOutcome;
use countersign_domain::log::event::EventType;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_domain::primitives::secret::Secret;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, Span};
use url::Url;

use http_exporter::TraceHttpExporter;

const SERVICE: &str = "countersign";

/// An OpenTelemetry collector that accepts traces over HTTP.
#[derive(Clone, Debug)]
pub struct TracesConfig {
    pub url: Url,
    /// The value of the `authorization` header for the collector.
    pub authorization: Option<Secret<String>>,
    /// The percentage of new traces that are sampled. A request that continues a trace follows the caller's sampling
    /// decision.
    pub percent: u8,
}

/// The reason that traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    #[error("the HTTP client for the trace collector cannot be set up")]
    Client(#[from] reqwest::Error),
    /// The header value is invalid.
    #[error("`traces.authorization` is not a valid header value")]
    Authorization,
    #[error("traces cannot be exported")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// The target of traces. The default discards them.
#[derive(Default)]
pub struct TraceSink {
    exported: Option<(SdkTracerProvider, SdkTracer)>,
}

/// Work that is in progress, as a span. Dropping it ends the span.
pub struct TraceSpan {
    span: Option<Span>,
    place: Option<TraceParent>,
}

impl TraceSink {
    /// Creates a sink for a collector. The background task runs on the current runtime.
    pub fn to(settings: &TracesConfig) -> Result<Self, TracesError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(settings.url.as_str())
            .with_http_client(TraceHttpExporter::new(settings.authorization.as_ref())?)
            .build()?;
        let share = Sampler::TraceIdRatioBased(f64::from(settings.percent) / 100.0);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(share)))
            .with_resource(Resource::builder_empty().with_service_name(SERVICE).build())
            .build();
        let tracer = provider.tracer(SERVICE);
        Ok(Self { exported: Some((provider, tracer)) })
    }

    pub fn request(&self, parent: Option<&TraceParent>) -> TraceSpan {
        self.begin("request", SpanKind::Server, parent)
    }

    /// Starts a span for a delivery attempt.
    pub fn delivery(&self, kind: EventType, parent: Option<&TraceParent>) -> TraceSpan {
        self.begin(kind.name(), SpanKind::Client, parent)
    }

    fn begin(&self, name: &'static str, kind: SpanKind, parent: Option<&TraceParent>) -> TraceSpan {
        let Some((_, tracer)) = &self.exported else { return TraceSpan { span: None, place: parent.cloned() } };
        let context =
            parent.and_then(context_of).map_or_else(Context::new, |it| Context::new().with_remote_span_context(it));
        let span = tracer.build_with_context(tracer.span_builder(name).with_kind(kind), &context);
        let place = place_of(span.span_context());
        TraceSpan { span: Some(span), place }
    }

    /// Sends the remaining spans and ends the export.
    pub async fn end(&self) {
        let Some((provider, _)) = self.exported.clone() else { return };
        let ended = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last traces could not be exported");
        }
    }
}

impl TraceSpan {
    /// Returns the span's trace context, the parent of spans that it causes.
    pub const fn place(&self) -> Option<&TraceParent> {
        self.place.as_ref()
    }

    /// Ends the span of a request.
    pub fn answered(mut self, method: &'static str, route: &str, status: u16) {
        let Some(span) = &mut self.span else { return };
        span.update_name(format!("{method} {route}"));
        span.set_attribute(KeyValue::new("http.request.method", method));
        span.set_attribute(KeyValue::new("http.route", route.to_owned()));
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
        if status >= 500 {
            span.set_status(Status::error(""));
        }
    }

    /// Ends the span of a delivery attempt.
    pub fn delivered(mut self, endpoint: &str, event: &str, ended: &AttemptOutcome) {
        let Some(span) = &mut self.span else { return };
        span.set_attribute(KeyValue::new("countersign.endpoint", endpoint.to_owned()));
        span.set_attribute(KeyValue::new("countersign.event", event.to_owned()));
        match ended {
            AttemptOutcome::Answered { status, .. } | AttemptOutcome::Looked { status, .. } => {
                span.set_attribute(KeyValue::new("http.response.status_code", i64::from(*status)));
            }
            AttemptOutcome::Failed { why } => span.set_attribute(KeyValue::new("error.type", why.as_str())),
            AttemptOutcome::Over {} => {}
        }
        if !ended.arrived() {
            span.set_status(Status::error(ended.outcome()));
        }
    }
}

fn context_of(place: &TraceParent) -> Option<SpanContext> {
    let (trace, span) = (TraceId::from_hex(place.trace_id()).ok()?, SpanId::from_hex(place.parent_id()).ok()?);
    let flags = if place.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::default() };
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}

fn place_of(context: &SpanContext) -> Option<TraceParent> {
    let flags = context.trace_flags().to_u8();
    TraceParent::read(&format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id()))
}
