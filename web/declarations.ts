/** Writes the types of the embeddable client into one file beside it, `antiphon-client.d.ts`. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Plugin } from "vite";

const FILE = "antiphon-client.d.ts";
/** The modules whose types are public, in the order in which they are written. The last one says what is exported. */
const MODULES = ["wire", "events", "antiphon"];
const HEAD = "/** The types of antiphon-client.js. */\n";

export function declarations(): Plugin {
  return {
    name: "antiphon-declarations",
    apply: "build",
    generateBundle() {
      const folder = mkdtempSync(join(tmpdir(), "antiphon-"));
      try {
        const tsc = join(import.meta.dirname, "node_modules", ".bin", "tsc");
        execFileSync(tsc, ["-p", "tsconfig.client.json", "--outDir", folder], { cwd: import.meta.dirname });
        const modules = MODULES.map((name) => readFileSync(join(folder, `${name}.d.ts`), "utf8"));
        this.emitFile({ type: "asset", fileName: FILE, source: joinModules(modules) });
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}

/** Joins modules whose types are all exported, and whose values only if the last module exports them. */
export function joinModules(modules: string[]): string {
  const exported = new Set(
    [...modules.at(-1)!.matchAll(/^export \{ (.*) \} from /gm)].flatMap(([, names]) => names!.split(", ")),
  );
  const joined = modules
    .join("\n")
    .replace(/^(?:import .*|export (?:type )?(?:\*|\{.*\}) from .*|export \{\};)\n/gm, "")
    .replace(/^export (declare (?:const|function|class) (\w+))/gm, (whole, declared: string, name: string) =>
      exported.has(name) || modules.at(-1)!.includes(whole) ? whole : declared,
    );
  // Without this line, a declaration file exports everything that it declares.
  return `${HEAD}${joined}export {};\n`;
}
