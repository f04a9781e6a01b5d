/** Starts the console. */
import { createRoot } from "react-dom/client";
import { createTheme, MantineProvider, type MantineColorScheme, type MantineColorSchemeManager } from "@mantine/core";
import "@mantine/core/styles/baseline.css";
import "@mantine/core/styles/default-css-variables.css";
import "@mantine/core/styles/global.css";
import "@mantine/core/styles/UnstyledButton.css";
import "@mantine/core/styles/Paper.css";
import "@mantine/core/styles/CloseButton.css";
import "@mantine/core/styles/Overlay.css";
import "./styles/tokens.css";
import "./styles/pieces.css";
import "./styles/base.css";
import App from "./App";
import { nonce } from "./ui/skin";

const KEY = "toolreeve-theme";

const kept: MantineColorSchemeManager = {
  get: (otherwise) => (localStorage.getItem(KEY) as MantineColorScheme | null) ?? otherwise,
  set: (value) => localStorage.setItem(KEY, value),
  subscribe: () => {},
  unsubscribe: () => {},
  clear: () => localStorage.removeItem(KEY),
};

const theme = createTheme({
  fontFamily: "var(--font)",
  fontFamilyMonospace: "var(--mono)",
  defaultRadius: 6,
  respectReducedMotion: true,
});

createRoot(document.getElementById("root")!).render(
  <MantineProvider theme={theme} getStyleNonce={() => nonce} defaultColorScheme="auto" colorSchemeManager={kept}>
    <App />
  </MantineProvider>,
);
