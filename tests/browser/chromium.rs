//! One Chromium for all tests that run at once. Each person has their own browser context, like a private window.
//! Contexts share no cookies, storage, caches or windows.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use chromiumoxide::browser::{Browser, BrowserConfig};
use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use chromiumoxide::cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams};
use futures_util::StreamExt as _;
use tokio::sync::{Mutex, oneshot};

use crate::gateway::BrowserGateway;
use crate::person::BrowserTab;

/// On a disk that has not read it yet it starts slowly.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// The process, driven by a thread of its own: each test has a runtime, and whichever started it may end first.
struct Process {
    /// There until it is given back to be closed.
    browser: Option<Browser>,
    end: Option<oneshot::Sender<Browser>>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    /// Returns the running process, or starts one. The process ends when its last owner drops it, so that none
    /// outlives the tests.
    async fn shared() -> Arc<Self> {
        static RUNNING: Mutex<Weak<Process>> = Mutex::const_new(Weak::new());
        let mut running = RUNNING.lock().await;
        if let Some(process) = running.upgrade() {
            return process;
        }
        let process = Arc::new(Self::start().await);
        *running = Arc::downgrade(&process);
        process
    }

    async fn start() -> Self {
        let (started, browser) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = std::thread::spawn(move || runtime.block_on(drive(started, ended)));
        Self { browser: Some(browser.await.expect("Chromium starts")), end: Some(end), thread: Some(thread) }
    }

    fn browser(&self) -> &Browser {
        self.browser.as_ref().expect("it is given back when nobody has the process any more")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let (Some(browser), Some(end), Some(thread)) = (self.browser.take(), self.end.take(), self.thread.take())
        else {
            return;
        };
        // Errors are ignored here, because dropping a browser kills its process.
        drop(end.send(browser));
        drop(thread.join());
    }
}

/// Starts a browser, sends it to the caller, and closes it when the caller returns it.
async fn drive(started: oneshot::Sender<Browser>, ended: oneshot::Receiver<Browser>) {
    let profile = tempfile::tempdir().unwrap();
    let config = BrowserConfig::builder()
        .new_headless_mode()
        .no_sandbox()
        .user_data_dir(profile.path())
        .args(["disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"])
        .args(["disable-component-update", "disable-sync"])
        // Without it a page that was loaded a moment ago drops what the mouse does before its first frame.
        .args(["allow-pre-commit-input"])
        .viewport(None)
        .launch_timeout(START_PATIENCE)
        .build()
        .expect("a Chromium is installed");
    let (browser, mut handler) = Browser::launch(config).await.unwrap();
    tokio::spawn(async move { while handler.next().await.is_some() {} });
    drop(started.send(browser));
    let Ok(mut browser) = ended.await else { return };
    browser.close().await.unwrap();
    browser.wait().await.unwrap();
}

/// Browser context of one person, empty at first.
pub struct Chromium {
    process: Arc<Process>,
    context: BrowserContextId,
}

impl Chromium {
    pub async fn open() -> Self {
        let process = Process::shared().await;
        let context = process.browser().create_browser_context(CreateBrowserContextParams::default()).await.unwrap();
        Self { process, context }
    }

    pub async fn tab(&self, gateway: &BrowserGateway) -> BrowserTab {
        let blank = CreateTargetParams::builder().url("about:blank").browser_context_id(self.context.clone());
        let page = self.process.browser().new_page(blank.build().unwrap()).await.unwrap();
        let tab = BrowserTab::on(page, gateway);
        tab.resize(1280, 900).await;
        tab
    }

    /// Closes the context's tabs, and deletes its cookies, storage and caches.
    pub async fn close(self) {
        self.process.browser().dispose_browser_context(self.context.clone()).await.unwrap();
    }
}
