// What pages do beyond links and forms. Every page is whole without it.
"use strict";

// Times are shown in UTC; the title has them in the zone of the browser.
document.querySelectorAll("time[datetime]").forEach((time) => {
  time.title = new Date(time.dateTime).toLocaleString();
});
