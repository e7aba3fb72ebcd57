"use strict";
(function () {
  var rows = Array.prototype.slice.call(document.querySelectorAll("tbody tr[data-status]"));
  var status = document.getElementById("status"), reason = document.getElementById("reason");
  var text = document.getElementById("text"), count = document.getElementById("count");
  function apply() {
    var wanted = text.value.toLowerCase(), shown = 0;
    rows.forEach(function (row) {
      var fits = (!status.value || row.dataset.status === status.value)
        && (!reason.value || row.dataset.reason === reason.value)
        && (!wanted || row.textContent.toLowerCase().indexOf(wanted) >= 0);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    count.textContent = shown + " of " + rows.length + " tasks";
  }
  [status, reason, text].forEach(function (field) { field.addEventListener("input", apply); });
  document.querySelector(".filters").hidden = false;
  apply();
})();
