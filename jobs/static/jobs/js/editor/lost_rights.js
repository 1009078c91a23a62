// A user of the editor was signed out, or lost the role or the project, while the page is open.
const REFUSALS = [401, 403, 404];

export const LOST =
  "You can't submit jobs here any more: you were signed out, or your role changed. What you typed stays in this browser.";

// `isElsewhere`: the answer came from another address, which is the sign-in.
export function isLost(status, isElsewhere = false) {
  return isElsewhere || REFUSALS.includes(status);
}
