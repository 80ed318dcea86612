import { defineConfig } from "vitest/config";
import { declarations } from "./declarations.ts";

// The server that `npm run dev` talks to.
const SERVER = process.env["ANTIPHON_URL"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  plugins: [declarations()],
  build: {
    outDir: "../src/antiphon/server/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    // No data: URLs, since the content security policy refuses worklets and styles from them.
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: {
        app: "index.html",
        admin: "admin.html",
        "antiphon-client": "src/client/antiphon.ts",
        "antiphon-worklets": "src/client/worklets.ts",
      },
      // The page imports the embeddable module itself, instead of a third file that both share.
      preserveEntrySignatures: "allow-extension",
      output: {
        // File names without hashes: the output is committed, and the server revalidates by content.
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: {
    proxy: {
      // The server only accepts pages from its own origin.
      "/ws": { target: SERVER, ws: true, changeOrigin: true, rewriteWsOrigin: true },
      "/api": { target: SERVER, changeOrigin: true, headers: { origin: SERVER } },
    },
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
  },
});
