// One stream of what happens for all tabs of this browser: a browser has few connections to one gateway. Whichever
// tab holds the lock has the stream and tells the others; when it goes, the next one goes on from where it was.

const NAME = "countersign.follow";
const AGAIN_MILLIS = 15_000;

// Says on the document what the server tells after a place in the log ("news"), and that there is no stream any more
// ("nonews"). Another script of the page acts on it.
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
      // A stream that only broke is asked for again by the browser itself; one that was refused is not.
      if (stream.readyState !== EventSource.CLOSED) return;
      say("nonews");
      setTimeout(lead, AGAIN_MILLIS);
    };
  };
  // The lock is held for as long as the page is there.
  if (navigator.locks) navigator.locks.request(NAME, () => new Promise(lead));
  else lead();
  channel.postMessage({ joined: after });
}

if (document.getElementById("main").dataset.live) follow(Number(document.body.dataset.reach));
