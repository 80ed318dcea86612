/** Decides when the microphone is open, and when its audio is sent. */

import type { Microphone } from "./microphone";
import type { ClientMessage } from "./wire";

/** What was said just before the key was released is still on its way through the sound card. */
const TAIL_MS = 100;
/** The microphone stays open between presses, since opening it each time would lose the first words. */
const CLOSE_DELAY_MS = 10_000;

export interface Listening {
  /** Whether the microphone's audio is sent. */
  readonly isOn: boolean;
  /** Whether nobody has asked to listen. While the microphone is being opened, it is neither on nor off. */
  readonly isOff: boolean;
  /** Opens the microphone, then sends the message. Rejects with a `MicrophoneError`. */
  start(message: ClientMessage): Promise<void>;
  /** Ends the user's turn. The microphone is closed some seconds later. */
  stop(): void;
  /** Closes the microphone. */
  end(): void;
  /** The microphone was lost. */
  microphoneLost(): void;
}

export function createListening(microphone: Microphone, send: (message: ClientMessage) => void): Listening {
  let isOn = false;
  let isWanted = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function schedule(delayMs: number, task: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(task, delayMs);
  }

  function closeLater(): void {
    schedule(CLOSE_DELAY_MS, () => microphone.close());
  }

  return {
    get isOn() {
      return isOn;
    },
    get isOff() {
      return !isOn && !isWanted;
    },
    async start(message) {
      clearTimeout(timer);
      const wasWanted = isWanted;
      isWanted = true;
      // Pressed again before the tail was sent: both presses are one turn.
      if (isOn && !wasWanted) return;
      // Started twice while the browser asks for permission: the first call sends the message.
      if (wasWanted && !isOn) return microphone.open();
      try {
        await microphone.open();
      } catch (error) {
        isWanted = isOn = false;
        throw error;
      }
      // The key may be released, or the call ended, before the user has answered the browser.
      if (!microphone.isOpen) return;
      if (!isWanted) {
        closeLater();
        return;
      }
      isOn = true;
      send(message);
    },
    stop() {
      isWanted = false;
      if (!isOn) return;
      schedule(TAIL_MS, () => {
        isOn = false;
        send({ type: "stop_listening" });
        closeLater();
      });
    },
    end() {
      clearTimeout(timer);
      isWanted = isOn = false;
      microphone.close();
    },
    microphoneLost() {
      clearTimeout(timer);
      if (isOn) send({ type: "stop_listening" });
      isWanted = isOn = false;
    },
  };
}
