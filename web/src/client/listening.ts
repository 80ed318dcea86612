/** When the microphone is open, and when what it hears is sent. */

import type { Microphone } from "./microphone";
import type { ClientMessage } from "./wire";

/** What was said as the key went up is still on its way through the sound card. */
const TAIL_MS = 100;
/** Push-to-talk would lose its first words if the microphone had to be opened for each of them. */
const CLOSE_DELAY_MS = 10_000;

export interface Listening {
  /** Whether what is heard is sent. */
  readonly isOn: boolean;
  /** Whether nobody has asked to be heard. While the microphone is being opened it is neither on nor off. */
  readonly isOff: boolean;
  /** Opens the microphone, then says so. Rejects with a `MicrophoneError`. */
  start(message: ClientMessage): Promise<void>;
  /** What was said so far is the user's turn. The microphone is closed soon after. */
  stop(): void;
  /** Closes the microphone. */
  end(): void;
  /** The microphone is gone. */
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
      // Pressed again before the tail was over: it is one turn.
      if (isOn && !wasWanted) return;
      // Asked for twice while the browser asks the person: the first will say so.
      if (wasWanted && !isOn) return microphone.open();
      try {
        await microphone.open();
      } catch (error) {
        isWanted = isOn = false;
        throw error;
      }
      // The key may be up again, or the call over, before the person has answered the browser.
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
