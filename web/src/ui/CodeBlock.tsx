import { CopyButton } from "./CopyButton";

export function CodeBlock({ text, language }: { text: string; language: string }) {
  return (
    <div class="code-block">
      <div class="code-head">
        <span>{language || "code"}</span>
        <CopyButton text={() => text} label="Copy code" />
      </div>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </div>
  );
}
