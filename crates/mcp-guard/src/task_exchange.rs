//! Answers requests about tasks, and forwards an approved call to the server while its client polls.

use std::sync::Arc;

use countersign_adapters::http_client::Method;
use tokio::sync::{mpsc, oneshot};

use crate::approvals::Approvals;
use crate::exchange::{Exchange, ExchangeClient, HeadSender, PendingRequest};
use crate::task_guard::{TaskCall, TaskVerdict};
use crate::task_request::TaskRequest;

impl<A: Approvals, C: ExchangeClient> Exchange<A, C> {
    /// Answers a request about a task. If its call may run, forwards the call afterwards.
    pub async fn task(self, request: TaskRequest, head: HeadSender) {
        match self.guard.task(&request).await {
            TaskVerdict::Answer(status, response) => self.reply(head, status, Some(response)).await,
            TaskVerdict::Run { response, call } => {
                self.answer(head, 200, Some(response)).await;
                self.run_task(*call).await;
            }
        }
    }

    /// Forwards the call of a task. Its result is stored until the client asks for it.
    async fn run_task(mut self, call: TaskCall) {
        let TaskCall { request, sent, arguments } = call;
        let mirrored = self.upstream.pins.mirrored(&request.name);
        self.headers.name_call(&request.name);
        self.headers.mirror(&mirrored, &arguments);
        let (tasks, asked) = (Arc::clone(&self.guard.tasks), sent.request.clone());
        let questions = tasks.questions(&asked);
        self.upstream.calls.sent(self.call_name(&request.id), sent);
        // No client reads this response. If the exchange fails, the last piece is an error.
        let (pieces, mut body) = mpsc::channel(1);
        let (head, _told) = oneshot::channel();
        let line = request.with(&arguments);
        let pending = PendingRequest { id: request.id, is_call: true };
        // The client's response ends here.
        self.pieces = pieces;
        let last_piece = async {
            let mut last = Vec::new();
            while let Some(piece) = body.recv().await {
                last = piece;
            }
            last
        };
        let ((), last) = tokio::join!(self.pass(Method::POST, Some(line), Some(pending), head), last_piece);
        tasks.end_with(&asked, questions, &last);
    }
}
