// The copy buttons, and details that open for the printer. Without this script the page lacks nothing else.
(() => {
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details.folded:not([open])")) {
      part.open = true;
      opened.push(part);
    }
  });
  addEventListener("afterprint", () => {
    for (const part of opened.splice(0)) part.open = false;
  });
  const status = document.getElementById("copy-status");
  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      // Some browsers give a page from disk no clipboard; what is selected can still be copied.
      select(code);
      return document.execCommand("copy");
    }
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copy(button.parentElement.querySelector("code"));
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      status.textContent = done ? "The command was copied." : "The command is selected.";
      setTimeout(() => { button.textContent = "Copy"; status.textContent = ""; }, 2000);
    });
  }
})();
