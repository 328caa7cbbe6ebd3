import { fetchWhole } from "./api";

/** download saves an answer of the API as a file. */
export async function download(path: string, name: string): Promise<void> {
  const address = URL.createObjectURL(await fetchWhole(path));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
