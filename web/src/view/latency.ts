/** How long the user waits for an answer, by stage. */

import type { TurnMetricsMessage } from "../client/antiphon";

type Stage = "end_of_turn_ms" | "stt_ms" | "first_token_ms" | "first_audio_ms" | "total_ms";

const STAGES: readonly { stage: Stage; label: string }[] = [
  { stage: "end_of_turn_ms", label: "Detecting the end of your turn" },
  { stage: "stt_ms", label: "Speech recognition" },
  { stage: "first_token_ms", label: "First word" },
  { stage: "first_audio_ms", label: "First audio" },
  { stage: "total_ms", label: "You stopped → it spoke" },
];

interface StageLatency {
  stage: Stage;
  label: string;
  lastMs: number | null;
  medianMs: number | null;
}

export function summarizeLatency(metrics: readonly TurnMetricsMessage[]): StageLatency[] {
  return STAGES.map(({ stage, label }) => {
    // The total starts when the user stops speaking, so typed turns do not count.
    const counted = stage === "total_ms" ? metrics.filter(isSpoken) : metrics;
    const known = counted.map((each) => each[stage]).filter((ms): ms is number => typeof ms === "number");
    return { stage, label, lastMs: counted.at(-1)?.[stage] ?? null, medianMs: median(known) };
  });
}

function isSpoken({ end_of_turn_ms, stt_ms }: TurnMetricsMessage): boolean {
  return typeof end_of_turn_ms === "number" || typeof stt_ms === "number";
}

function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  return sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
}
