// Search of pages that are opened from the disk. Browsers refuse workers there, so the script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.body.appendChild(document.createElement("iframe"))
      frame.hidden = true
      const scope = frame.contentWindow
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const load = source => new Promise((resolve, reject) => {
        const script = scope.document.createElement("script")
        script.src = new URL(source, location.href)
        script.onload = resolve
        script.onerror = reject
        scope.document.head.append(script)
      })
      scope.importScripts = (...sources) => sources.reduce((ready, source) => ready.then(() => load(source)), Promise.resolve())
      this.scope = scope
      this.ready = load(url)
    }
    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
