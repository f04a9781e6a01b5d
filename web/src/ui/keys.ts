/** Which key presses belong to a field or a dialog, not to the page. */

const FIELDS = 'input:not([type="checkbox"]), textarea, select, [contenteditable="true"], [role="dialog"], .cm-editor';

export function typing(event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey) return true;
  const target = event.target;
  return target instanceof Element && target.closest(FIELDS) !== null;
}
