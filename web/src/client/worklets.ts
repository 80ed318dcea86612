// Both in one file: a worklet is loaded by its address, and shares no modules with the page.
import "./capture-worklet";
import "./player-worklet";
