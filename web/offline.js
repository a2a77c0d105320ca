// After the first visit the page opens without a network: its files are kept under the name of this build.
const FILES = []; // the build writes the list
const BUILD = ""; // and a digest of what is in the files

self.addEventListener("install", (event) => {
  const fresh = FILES.map((file) => new Request(file, { cache: "no-cache" })); // all of one build
  event.waitUntil(caches.open(BUILD).then((cache) => cache.addAll(fresh)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name.startsWith("headviz-") && name !== BUILD);
  const remove = (names) => Promise.all(old(names).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove).then(() => self.clients.claim()));
});
self.addEventListener("fetch", (event) => {
  const kept = caches.open(BUILD).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(kept.then((response) => response || fetch(event.request)));
});
