interface ProblemProps {
  /** Empty if there is none. */
  text: string;
  retry?: () => void;
}

/** Why something could not be done. */
export function Problem({ text, retry }: ProblemProps) {
  if (text === "") return null;
  return (
    <div class="problem-line">
      <p class="problem" role="alert">{text}</p>
      {retry !== undefined && <button type="button" class="button" onClick={retry}>Try again</button>}
    </div>
  );
}
