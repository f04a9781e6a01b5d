/** Class names that give Mantine's dialogs our look. */
export const SKIN = { content: "m-content", header: "m-head", title: "m-title", body: "m-body" };

/** The nonce of this page's Content-Security-Policy, for the style elements that libraries add. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
