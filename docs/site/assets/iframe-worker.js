// Pages that are opened from a disk may not start workers, which the search needs.
// There, a worker is a hidden frame: its script has a scope of its own.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      const script = frame.contentDocument.createElement("script");
      script.src = new URL(url, location.href).href;
      this.ready = new Promise((resolve) => { script.onload = resolve; });
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() =>
        this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }
  };
}
