import { defineConfig } from "vite";
import react from "@vitejs/plugin-react";

// The built files are served by `toolreeve serve` and packed into the wheel. `npm run dev` passes the API to a running server.
const server = process.env.TOOLREEVE_URL ?? "http://127.0.0.1:8733";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/toolreeve/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { host: "127.0.0.1", proxy: { "/api": server, "/login": server } },
});
