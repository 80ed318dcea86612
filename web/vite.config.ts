import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a server to talk to.
const SERVER = process.env["ANTIPHON_URL"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/antiphon/server/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    // No data: addresses. The page's policy would refuse a worklet or a style from one.
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: {
        app: "index.html",
        "antiphon-client": "src/client/antiphon.ts",
        "antiphon-worklets": "src/client/worklets.ts",
      },
      // The page uses the module that others embed, instead of a third file that both would share.
      preserveEntrySignatures: "allow-extension",
      output: {
        // Names without digests: the output is committed, and the server revalidates by the content.
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: {
    proxy: {
      // The server admits pages of its own origin only.
      "/ws": { target: SERVER, ws: true, changeOrigin: true, rewriteWsOrigin: true },
      "/api": { target: SERVER, changeOrigin: true, headers: { origin: SERVER } },
    },
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
  },
});
