// What pages do beyond links and forms. Every page is whole without it.
"use strict";

// Times are shown in UTC; the title has them in the zone of the browser.
document.querySelectorAll("time[datetime]").forEach((time) => {
  time.title = new Date(time.dateTime).toLocaleString();
});

// In a narrow window the screens are one line that scrolls: to where the visitor is, and to what has the focus.
const screens = document.querySelector(".top nav");
const show = (link) => link?.scrollIntoView({ block: "nearest", inline: "center" });
show(screens.querySelector("[aria-current]"));
screens.addEventListener("focusin", (event) => show(event.target));

// A slider tells its value while it is moved.
document.addEventListener("input", (event) => {
  const shown = event.target.type === "range" && event.target.parentElement.querySelector("output");
  if (shown) shown.textContent = Number(event.target.value).toLocaleString("en");
});
