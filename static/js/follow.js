// Shares one event stream between all tabs of a browser, because a browser has few connections to one gateway. The tab
// with the lock reads the stream and forwards events. When that tab closes, the next tab continues from its position.

const NAME = "countersign.follow";
const AGAIN_MILLIS = 15_000;

// Dispatches an event of the server after a log position ("news"), or the end of the stream ("nonews"), on the
// document. Another script of the page handles it.
function follow(after) {
  const say = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
  let seen = after;
  let leads = false;
  const channel = new BroadcastChannel(NAME);
  const take = (news) => {
    if (news.reach <= seen) return;
    seen = news.reach;
    say("news", news);
  };
  channel.onmessage = ({ data }) => {
    if (data.joined === undefined) take(data);
    else if (leads && data.joined < seen) channel.postMessage({ reach: seen, missed: true });
  };
  const lead = () => {
    leads = true;
    const stream = new EventSource(`/live?after=${seen}`);
    stream.onmessage = (message) => {
      const news = { reach: Number(message.lastEventId), ...JSON.parse(message.data) };
      channel.postMessage(news);
      take(news);
    };
    stream.onerror = () => {
      // The browser reconnects a broken stream itself, but not a rejected one.
      if (stream.readyState !== EventSource.CLOSED) return;
      say("nonews");
      setTimeout(lead, AGAIN_MILLIS);
    };
  };
  // The promise never settles, so the page holds the lock until it closes.
  if (navigator.locks) navigator.locks.request(NAME, () => new Promise(lead));
  else lead();
  channel.postMessage({ joined: after });
}

if (document.getElementById("main").dataset.live) follow(Number(document.body.dataset.reach));
