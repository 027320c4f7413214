//! The MCP servers behind a gateway.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use countersign_adapters::http_client::HttpClient;
use countersign_domain::primitives::secret::Secret;
use url::Url;

use crate::continuations::Continuations;
use crate::open_calls::OpenCalls;
use crate::task_runs::TaskRuns;
use crate::tool_list::ToolPins;

/// The MCP servers behind a gateway.
#[derive(Default)]
pub struct McpUpstreams(BTreeMap<String, Arc<McpUpstream>>);

/// An MCP server behind a gateway.
pub struct McpUpstream {
    pub name: String,
    pub url: Url,
    pub secret: Option<Secret<String>>,
    pub client: HttpClient,
    pub pins: Arc<ToolPins>,
    pub continuations: Arc<Continuations>,
    pub tasks: Arc<TaskRuns>,
    pub calls: OpenCalls,
}

/// The settings of an MCP server.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The name in the URL, and before the names of its tools in policies.
    pub name: String,
    pub url: Url,
    /// The bearer token for the server.
    pub secret: Option<Secret<String>>,
}

impl McpUpstreams {
    /// Prepares the servers. The pinned descriptions of their tools are stored below the folder.
    pub fn new(settings: &[UpstreamSettings], client: &HttpClient, folder: &Path) -> io::Result<Self> {
        let open = |it: &UpstreamSettings| {
            let upstream = McpUpstream {
                name: it.name.clone(),
                url: it.url.clone(),
                secret: it.secret.clone(),
                client: client.clone(),
                pins: Arc::new(ToolPins::open(Some(folder.join(&it.name)))?),
                continuations: Arc::default(),
                tasks: Arc::default(),
                calls: OpenCalls::default(),
            };
            Ok((it.name.clone(), Arc::new(upstream)))
        };
        settings.iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// Returns the server with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<McpUpstream>> {
        self.0.get(name)
    }
}
