import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { type Block, type Inline, parseMarkdown } from "../view/markdown";
import { CopyButton } from "./CopyButton";

interface MarkdownProps {
  text: string;
  /** How many characters of the text were heard; the rest is marked. */
  heardChars?: number | null;
}

/** Counts down as text is rendered: what comes after 0 was not heard. */
interface Budget {
  left: number;
}

export function Markdown({ text, heardChars = null }: MarkdownProps) {
  return useMemo(() => {
    const blocks = parseMarkdown(text);
    // Markup such as ** is in the text but not on the page, so the cut is placed by proportion.
    const share = heardChars === null ? 1 : heardChars / Math.max(1, text.length);
    const left = heardChars === null ? Infinity : Math.round(share * countText(blocks));
    return <div class="markdown">{drawBlocks(blocks, { left })}</div>;
  }, [text, heardChars]);
}

function drawBlocks(blocks: readonly Block[], heard: Budget): ComponentChildren {
  return blocks.map((block, index) => drawBlock(block, index, heard));
}

function drawBlock(block: Block, key: number, heard: Budget): ComponentChildren {
  switch (block.type) {
    case "paragraph":
      return <p key={key}>{draw(block.children, heard)}</p>;
    case "heading": {
      // The page itself uses the first two levels.
      const Heading = block.level <= 1 ? "h3" : block.level === 2 ? "h4" : "h5";
      return <Heading key={key}>{draw(block.children, heard)}</Heading>;
    }
    case "code":
      return <CodeBlock key={key} text={block.text} language={block.language} />;
    case "quote":
      return <blockquote key={key}>{drawBlocks(block.children, heard)}</blockquote>;
    case "list": {
      const items = block.items.map((item, index) => <li key={index}>{drawItem(item, heard)}</li>);
      return block.start === null ? <ul key={key}>{items}</ul> : <ol key={key} start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div key={key} class="table-wrap" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>{block.head.map((cell, index) => <th key={index} scope="col">{draw(cell, heard)}</th>)}</tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>{row.map((cell, at) => <td key={at}>{draw(cell, heard)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={key} />;
  }
}

function drawItem(blocks: readonly Block[], heard: Budget): ComponentChildren {
  const [only] = blocks;
  return blocks.length === 1 && only?.type === "paragraph" ? draw(only.children, heard) : drawBlocks(blocks, heard);
}

function draw(inlines: readonly Inline[], heard: Budget): ComponentChildren {
  return inlines.map((inline, key) => {
    switch (inline.type) {
      case "text":
        return drawText(inline.text, key, heard);
      case "code":
        return <code key={key}>{drawText(inline.text, 0, heard)}</code>;
      case "break":
        return <br key={key} />;
      case "link":
        return (
          <a key={key} href={inline.url} target="_blank" rel="noopener noreferrer">
            {draw(inline.children, heard)}
          </a>
        );
      default: {
        const Tag = inline.type;
        return <Tag key={key}>{draw(inline.children, heard)}</Tag>;
      }
    }
  });
}

function drawText(text: string, key: number, heard: Budget): ComponentChildren {
  const said = text.slice(0, heard.left);
  const unsaid = text.slice(said.length);
  heard.left -= said.length;
  return unsaid === "" ? said : [said, <span key={key} class="unheard">{unsaid}</span>];
}

function countText(blocks: readonly (Block | Inline)[]): number {
  return blocks.reduce((sum, node) => {
    if (node.type === "text" || (node.type === "code" && !("language" in node))) return sum + node.text.length;
    if (node.type === "list") return sum + node.items.reduce((all, item) => all + countText(item), 0);
    if (node.type === "table") return sum + [node.head, ...node.rows].flat().reduce((all, cell) => all + countText(cell), 0);
    return "children" in node ? sum + countText(node.children) : sum;
  }, 0);
}

function CodeBlock({ text, language }: { text: string; language: string }) {
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
