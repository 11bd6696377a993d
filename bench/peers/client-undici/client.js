// undici's Pool, the client of Node's own project with the least overhead.
// client.js URL CONNECTIONS SECONDS SECONDS_OF_WARM_UP BYTES_OF_BODY
import { Pool } from 'undici';

const [url, connections, seconds, warmUp, bytes] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: Number(connections), pipelining: 1 });
let requests = 0;
let failures = 0;

async function ask() {
  const { statusCode, body } = await pool.request({ path: pathname, method: 'GET' });
  let received = 0;
  for await (const piece of body) received += piece.length;
  return statusCode === 200 && received === Number(bytes);
}

async function askRepeatedly() {
  for (;;) {
    const good = await ask().catch(() => false);
    requests++;
    if (!good) failures++;
  }
}

const processorSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

for (let index = 0; index < Number(connections); index++) askRepeatedly();
setTimeout(() => {
  const before = requests;
  const processor = processorSeconds();
  setTimeout(() => {
    console.log(JSON.stringify({ requests: requests - before, failures,
                                 processor_seconds: processorSeconds() - processor }));
    process.exit(0);
  }, Number(seconds) * 1000);
}, Number(warmUp) * 1000);
