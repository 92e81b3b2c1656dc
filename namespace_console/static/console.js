// What pages do beyond links and forms. Every page is whole without it.
"use strict";

// Times are shown in UTC; the title has them in the zone of the browser.
document.querySelectorAll("time[datetime]").forEach((time) => {
  time.title = new Date(time.dateTime).toLocaleString();
});

// A slider tells its value while it is moved.
document.addEventListener("input", (event) => {
  const shown = event.target.type === "range" && event.target.parentElement.querySelector("output");
  if (shown) shown.textContent = Number(event.target.value).toLocaleString("en");
});
