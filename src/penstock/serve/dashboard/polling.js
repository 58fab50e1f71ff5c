// Asking again and again, while the page is looked at.
/** Calls `act` now and then every so often; `failed` hears why it could not. Returns what ends it. */
export function every(milliseconds, act, failed) {
  let timer = null;
  let over = false;
  let busy = false;
  const turn = async () => {
    busy = true;
    try {
      if (!document.hidden) await act();
    } catch (error) {
      if (!over) failed(error);
    }
    busy = false;
    if (!over) timer = setTimeout(turn, milliseconds);
  };
  const seen = () => {
    if (!document.hidden && !busy) {
      clearTimeout(timer);
      turn();
    }
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return () => {
    over = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
