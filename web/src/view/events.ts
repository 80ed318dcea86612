/** What happens on the page itself, beside the server's messages. */

import type { Connection, MicrophoneState, NoticeKind, Playing, ServerMessage, SoundState } from "../client/antiphon";
import type { Talk } from "./state";

export type LocalEvent =
  /** `hasToken`: whether one was sent. */
  | { type: "connection"; connection: Connection; hasToken?: boolean }
  | { type: "microphone"; microphone: MicrophoneState }
  | { type: "sound"; sound: SoundState }
  | { type: "playing"; playing: Playing }
  | { type: "talk"; talk: Talk }
  /** Typed, and on its way. */
  | { type: "said"; text: string }
  /** A question that failed is asked again. */
  | { type: "said_again"; key: string }
  | { type: "drafted"; text: string }
  | { type: "taken_back"; ids: readonly string[] }
  | { type: "voice_known"; hasVoice: boolean }
  | { type: "back_noticed" }
  | { type: "confirmation_answered"; token: string; approved: boolean }
  | { type: "confirmation_expired"; token: string }
  | { type: "flyout_opened"; flyout: string }
  | { type: "flyout_closed" }
  | { type: "reminder_dismissed"; id: string }
  | { type: "notice_passed"; key: string }
  | { type: "noticed"; kind: NoticeKind; text: string; code: string | null }
  /** Worth a line in the thread. */
  | { type: "remarked"; text: string }
  | { type: "failed"; text: string }
  | { type: "error_dismissed" }
  | { type: "block_over" }
  /** The thread is emptied: cleared, or another conversation begins. */
  | { type: "cleared" };

export type ViewEvent = ServerMessage | LocalEvent;
