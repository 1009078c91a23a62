// Permission to notify, which is requested only when the user chose a notification.
const INSECURE = "This browser shows notifications only over HTTPS.";
const UNKNOWN = "This browser shows no notifications.";
const DENIED = "This browser blocks notifications of the portal. Allow them in its settings for this site.";

// Returns why there are none, or an empty text.
export async function requestPermission() {
  if (!isSecureContext) return INSECURE;
  if (!("Notification" in window)) return UNKNOWN;
  return (await Notification.requestPermission()) === "granted" ? "" : DENIED;
}

export function isAllowed() {
  return "Notification" in window && Notification.permission === "granted";
}
